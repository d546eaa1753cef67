import { type LintFinding, lint, lintTracked } from "@agentfense/permission";
import { print, warn } from "../output.ts";
import { chooseRules, type RulesValues } from "../rules.ts";
import { type Paint, paintFor, printable, printableSentence } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";
import { ContentReader } from "./content-reader.ts";
import { readTrackedFiles } from "./git-index.ts";
import { rootEntry, tryEntriesOf, type ViewEntry } from "./workspace-view.ts";

/** `agentfense policy lint` */
export async function lintDirectory(
  values: RulesValues & { readonly all?: boolean | undefined; readonly json?: boolean | undefined },
  directory = ".",
): Promise<number> {
  const place = await resolveDirectory(directory);
  const { policy, rules } = await chooseRules(values, place);
  const root = rootEntry(place, policy.root);

  const unseen: string[] = [];
  const reader = new ContentReader();
  const findings = [...lint(rules, walk(root, unseen), reader.textOf), ...lintTracked(rules, tracked(place, unseen))];
  unseen.push(...reader.failures);
  for (const reason of unseen) process.stderr.write(`agentfense: not checked: ${reason}\n`);
  for (const sentence of reader.leftOut()) warn(sentence);
  await print(
    values.json
      ? `${JSON.stringify(findings, undefined, 2)}\n`
      : describeFindings(findings, { all: values.all === true, paint: paintFor(process.stdout, process.env) }),
  );
  return findings.some((each) => isReadableSecret(each) || each.kind === "tracked-hidden") || unseen.length > 0 ? 1 : 0;
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

function tracked(directory: string, unseen: string[]): readonly string[] {
  try {
    return readTrackedFiles(directory) ?? [];
  } catch (error) {
    unseen.push(`what git tracks (/.git/index: ${printable((error as Error).message)})`);
    return [];
  }
}

/** What makes rules fail the check. */
export function isReadableSecret({ kind, severity }: LintFinding): boolean {
  return (kind === "secret-visible" || kind === "secret-inside") && severity === "warning";
}

/** One line a finding, warnings only unless all are wanted, and a last line with their number. */
export function describeFindings(
  findings: readonly LintFinding[],
  { all, paint, seeAll = "--all" }: { readonly all: boolean; readonly paint: Paint; readonly seeAll?: string },
): string {
  const shown = all ? findings : findings.filter(({ severity }) => severity === "warning");
  const lines = shown.map(({ severity, kind, message }) => {
    const label = `${severity === "warning" ? "warning" : "remark"}: ${kind}`;
    return `${paint(severity === "warning" ? "doubtful" : "faint", label)}: ${printableSentence(message)}\n`;
  });
  const hidden = findings.length - shown.length;
  const count = shown.length === 0 ? "nothing wrong" : `${shown.length} found`;
  return `${lines.join("")}${count}${hidden === 0 ? "" : `; ${hidden} remarks with ${seeAll}`}\n`;
}
