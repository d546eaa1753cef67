import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { getPreset, holdsNoCredentials, lint, listPresets, PresetError } from "@agentfense/permission";
import { DEFAULT_PRESET, POLICY_FILE, parseProjectPolicy, takenRules } from "@agentfense/sdk/project";
import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { findOutputs } from "../init/outputs.ts";
import { policyText, summaryOf } from "../init/policy-text.ts";
import { isPurpose, PURPOSES, type Purpose } from "../init/purposes.ts";
import { findSecrets } from "../init/secrets.ts";
import { surveyDirectory } from "../init/survey.ts";
import { writeNewFile } from "../init/write-file.ts";
import { print, warn } from "../output.ts";
import { ContentReader } from "../policy/content-reader.ts";
import { describeFindings, isReadableSecret } from "../policy/findings.ts";
import { paintFor, printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";

const HELP = `Usage: agentfense init [OPTIONS] [DIR]

Looks at the project in DIR (default: where you are) and writes ${POLICY_FILE} for it: a preset, places where builds write,
and what looks like a secret by its name or its content, hidden; each with the reason. Then checks the result as policy lint does. Follows no link, changes nothing else.

  --for PURPOSE     what agents are to do here; asked for at a terminal:
${Object.entries(PURPOSES)
  .map(([name, { description }]) => `                      ${name.padEnd(13)}${description}`)
  .join("\n")}
  --preset NAME     the rules to begin with instead (default ${DEFAULT_PRESET}):
${listPresets()
  .map(({ name, description }) => `                      ${name.padEnd(13)}${description}`)
  .join("\n")}
  --force           replace a ${POLICY_FILE} that is there already
  --stdout          print it and write nothing
  -h, --help        this text

Exit codes: 0, or 1 if a secret can be read all the same.
`;

const OPTIONS = {
  for: { type: "string" },
  preset: { type: "string" },
  force: { type: "boolean" },
  stdout: { type: "boolean" },
} as const;

export const init: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [given = ".", ...surplus] = positionals;
  if (surplus.length > 0) throw new UsageError("init takes one directory");
  if (values.for !== undefined && values.preset !== undefined) throw new UsageError("give --for or --preset, not both");
  const directory = await resolveDirectory(given);
  const purpose = values.preset === undefined ? await choosePurpose(values.for) : undefined;
  const preset = requirePreset(values.preset ?? purpose?.preset ?? DEFAULT_PRESET);

  const { entries, complete } = surveyDirectory(directory);
  if (!complete) warn(`only the first ${entries.length} entries of ${printable(directory)} were looked at`);
  const contents = new ContentReader();
  const settings = entries.find(({ path, type }) => path === "/.git/config" && type === "file");
  const hasCleanSettings = settings !== undefined && holdsNoCredentials(contents.textOf(settings) ?? "?");
  const found = {
    outputs: await findOutputs(directory, entries),
    secrets: findSecrets(entries, contents.textOf),
    sections: purpose?.sections({ entries, hasCleanSettings }) ?? [],
  };
  const path = join(directory, POLICY_FILE);
  const text = policyText(preset, found);
  const rules = takenRules({}, await parseProjectPolicy(text, path));
  const reader = new ContentReader();
  const findings = lint(rules, entries, reader.textOf);
  for (const reason of reader.failures) warn(`not checked: ${reason}`);
  for (const sentence of reader.leftOut()) warn(sentence);

  if (values.stdout) await print(text);
  else {
    await writeNewFile(path, text, { replace: values.force === true });
    await print(`wrote ${summaryOf(preset, found)}\n`);
    const paint = paintFor(process.stdout, process.env);
    await print(describeFindings(findings, { all: false, paint, seeAll: "agentfense policy lint --all" }));
  }
  return findings.some(isReadableSecret) ? 1 : 0;
}

/** The one that was told, or asked for where somebody can answer. */
async function choosePurpose(told: string | undefined): Promise<Purpose | undefined> {
  if (told === undefined && !(process.stdin.isTTY && process.stdout.isTTY)) return undefined;
  const name = told ?? (await askForPurpose());
  if (isPurpose(name)) return PURPOSES[name];
  throw new UsageError(`--for is one of ${Object.keys(PURPOSES).join(", ")}, not ${JSON.stringify(name)}`, {
    slip: { given: name, known: Object.keys(PURPOSES) },
  });
}

async function askForPurpose(): Promise<string> {
  for (const [name, { description }] of Object.entries(PURPOSES)) await print(`  ${name.padEnd(8)}${description}\n`);
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = (await terminal.question("What are agents to do here? [coding] ")).trim();
    return Object.keys(PURPOSES).find((name) => answer !== "" && name.startsWith(answer)) ?? (answer || "coding");
  } finally {
    terminal.close();
  }
}

function requirePreset(name: string): string {
  try {
    getPreset(name);
  } catch (error) {
    if (!(error instanceof PresetError)) throw error;
    throw new UsageError(error.message, { slip: { given: name, known: listPresets().map((preset) => preset.name) } });
  }
  return name;
}
