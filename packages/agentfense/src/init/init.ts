import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { holdsNoCredentials, lint } from "@agentfense/permission";
import { DEFAULT_PRESET, POLICY_FILE, parseProjectPolicy, takenRules } from "@agentfense/sdk/project";
import { CommandFailure, UsageError } from "../command-failure.ts";
import { print, warn } from "../output.ts";
import { ContentReader } from "../policy/content-reader.ts";
import { describeFindings, isReadableSecret } from "../policy/lint.ts";
import { surveyDirectory } from "../policy/survey.ts";
import { paintFor, printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";
import { findOutputs, findSecrets } from "./findings.ts";
import { policyText, summaryOf } from "./policy-text.ts";
import { isPurpose, PURPOSES, type Purpose, type PurposeName } from "./purposes.ts";

/** `agentfense init` */
export async function init(
  values: {
    readonly for?: PurposeName | undefined;
    readonly preset?: string | undefined;
    readonly force?: boolean | undefined;
    readonly stdout?: boolean | undefined;
  },
  given = ".",
): Promise<number> {
  if (values.for !== undefined && values.preset !== undefined) throw new UsageError("give --for or --preset, not both");
  const directory = await resolveDirectory(given);
  const purpose = values.preset === undefined ? await choosePurpose(values.for) : undefined;
  const preset = values.preset ?? purpose?.preset ?? DEFAULT_PRESET;

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
async function choosePurpose(told: PurposeName | undefined): Promise<Purpose | undefined> {
  if (told === undefined && !(process.stdin.isTTY && process.stdout.isTTY)) return undefined;
  const name = told ?? (await askForPurpose());
  if (isPurpose(name)) return PURPOSES[name];
  throw new UsageError(`there is no purpose ${JSON.stringify(name)}; there are: ${Object.keys(PURPOSES).join(", ")}`);
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

/** Makes a new file; what is there already, a link too, stays unless it may be replaced, and is never written through. */
async function writeNewFile(path: string, text: string, { replace }: { readonly replace: boolean }): Promise<void> {
  try {
    if (!replace) await writeFile(path, text, { flag: "wx" });
    else await replaceFile(path, text);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") {
      throw new CommandFailure(`${printable(path)} is there already`, {
        hint: "--force replaces it, --stdout only shows the new one",
      });
    }
    throw new CommandFailure(`cannot write ${printable(path)}: ${message}`);
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}`;
  try {
    await writeFile(temporary, text, { flag: "wx" });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
