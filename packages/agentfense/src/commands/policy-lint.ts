import { lint } from "@agentfense/permission";
import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { print, warn } from "../output.ts";
import { ContentReader } from "../policy/content-reader.ts";
import { describeFindings, isReadableSecret } from "../policy/findings.ts";
import { rootEntry, tryEntriesOf, type ViewEntry } from "../policy/workspace-view.ts";
import { chooseRules, RULES_HELP, RULES_OPTIONS } from "../rules-option.ts";
import { paintFor, printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";

const HELP = `Usage: agentfense policy lint [OPTIONS] [DIR]

Walks all of DIR (default: where you are; no link is followed) and says what looks wrong with the rules for it: secrets that can be read, rules
that match nothing, rules of the same rank that contradict each other. A secret is known by its name, or by what is in it: text files
that the rules let an agent read are searched for keys (the first 256 KiB of each; none is printed). Exits 1 if a secret can be
read, or if a part of DIR could not be looked at.

${RULES_HELP}
  --all             remarks too, not only warnings
  --json            one JSON array instead, of warnings and remarks
  -h, --help        this text
`;

const OPTIONS = { ...RULES_OPTIONS, all: { type: "boolean" }, json: { type: "boolean" } } as const;

export const policyLint: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [directory = ".", ...surplus] = positionals;
  if (surplus.length > 0) throw new UsageError("policy lint takes one directory");
  const place = await resolveDirectory(directory);
  const { policy, rules } = await chooseRules(values, place);
  const root = rootEntry(place, policy.root);

  const unseen: string[] = [];
  const reader = new ContentReader();
  const findings = lint(rules, walk(root, unseen), reader.textOf);
  unseen.push(...reader.failures);
  for (const reason of unseen) process.stderr.write(`agentfense: not checked: ${reason}\n`);
  for (const sentence of reader.leftOut()) warn(sentence);
  await print(
    values.json
      ? `${JSON.stringify(findings, undefined, 2)}\n`
      : describeFindings(findings, { all: values.all === true, paint: paintFor(process.stdout, process.env) }),
  );
  return findings.some(isReadableSecret) || unseen.length > 0 ? 1 : 0;
}

/** Everything below a directory, parents before children; what cannot be read is noted in `unseen`. */
function* walk(directory: ViewEntry, unseen: string[]): Generator<ViewEntry> {
  const { entries, error } = tryEntriesOf(directory);
  if (error !== undefined) unseen.push(`${printable(directory.path)} (${error})`);
  for (const entry of entries) {
    yield entry;
    if (entry.type === "directory") yield* walk(entry, unseen);
  }
}
