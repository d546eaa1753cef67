import { createWriteStream } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type ApplyOutcome, type Change, SandboxError } from "@agentfense/sdk";
import { CommandFailure } from "../command-failure.ts";
import { warn } from "../output.ts";
import type { Sandbox } from "../sandbox.ts";
import { printable, printableSentence } from "../terminal.ts";
import { counted, countsText, numberIn, shownPath, summaryLines } from "../wording.ts";
import type { McpRequest } from "./request.ts";

const KEPT_PREFIX = "agentfense-mcp-kept-";

/** More than this nobody reads. */
const SHOWN = 50;

/** The end of the changes: they are listed, and written where that was asked for. Gives whether all that was asked for is. */
export async function settle(
  request: McpRequest,
  sandbox: Sandbox,
  { inPeace }: { readonly inPeace: boolean },
): Promise<boolean> {
  const changes: Change[] = [];
  for await (const change of sandbox.changes({ fold: !request.sandbox.listsAll })) changes.push(change);
  if (changes.length === 0) {
    warn("no changes");
    return true;
  }
  warn(
    `${counted(
      changes.reduce((sum, change) => sum + numberIn(change), 0),
      "change",
    )}:`,
  );
  const lines = request.sandbox.listsAll ? changes.map(describe) : summaryLines(changes, describe);
  printSome(lines, request.sandbox.listsAll ? lines.length : SHOWN);
  const { patch, sandbox: asked, writesThrough } = request;
  if (patch !== undefined) await writePatch(sandbox, patch);
  if (writesThrough || asked.apply === "always" || (asked.apply === "success" && inPeace)) {
    return await writeBack(sandbox, asked, patch);
  }
  if (asked.apply === "success") warn("not written back after a signal; --apply=always does it all the same");
  else if (patch === undefined)
    warn("they are thrown away; --apply or --write-through writes them back, --patch FILE keeps a diff");
  return true;
}

/** What cannot be written back is kept as a diff: the sandbox, and its changes with it, goes when this ends. */
async function writeBack(
  sandbox: Sandbox,
  { directory, holdsExecutables }: McpRequest["sandbox"],
  patch: string | undefined,
): Promise<boolean> {
  try {
    const { outcomes } = await sandbox.apply({ holdExecutables: holdsExecutables });
    reportApplied(directory, outcomes);
    if (outcomes.every(({ applied }) => applied)) return true;
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    warn(`not written back to ${printable(directory)}: ${printableSentence(error.message)}`);
  }
  if (patch === undefined)
    await writePatch(sandbox, join(await mkdtemp(join(tmpdir(), KEPT_PREFIX)), "left-out.patch"));
  return false;
}

function describe(change: Change): string {
  const { kind, path, sensitive, folded } = change;
  const word = `${folded === undefined ? kind : "ignored"}${sensitive ? "!" : ""}`.padEnd(10);
  return folded === undefined ? `${word}${shownPath(change)}` : `${word}${printable(path)} (${countsText(folded)})`;
}

async function writePatch(sandbox: Sandbox, file: string): Promise<void> {
  try {
    await pipeline(Readable.from(patchTexts(sandbox)), createWriteStream(file));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || error instanceof TypeError) throw error;
    throw new CommandFailure(`${printable(file)} cannot be written (${code})`);
  }
  warn(`the diff is in ${printable(file)}`);
}

async function* patchTexts(sandbox: Sandbox): AsyncGenerator<string, void, undefined> {
  for await (const { unified } of sandbox.diff({ patch: true })) yield unified;
}

function reportApplied(directory: string, outcomes: readonly ApplyOutcome[]): void {
  const done = outcomes.filter(({ applied }) => applied);
  warn(`${counted(done.length, "change")} written back to ${printable(directory)}`);
  reportRemarkable(outcomes);
}

/** What a person should know of changes that were written back, or were not. */
export function reportRemarkable(outcomes: readonly ApplyOutcome[]): void {
  printSome(
    outcomes.flatMap(({ applied, change, reason, sensitive, conflict }) => {
      const path = printable(change.path);
      if (!applied) return [`left out  ${path}: ${printableSentence(reason)}`];
      if (sensitive) return [`look at   ${path}: your machine may run or trust it without being asked`];
      return conflict ? [`replaced  ${path}: it had changed in the meantime`] : [];
    }),
  );
}

function printSome(lines: readonly string[], most = SHOWN): void {
  for (const line of lines.slice(0, most)) process.stderr.write(`  ${line}\n`);
  if (lines.length > most) process.stderr.write(`  … and ${lines.length - most} more\n`);
}

/** Writes what was changed into the directory, and gives a remark for the agent on what stayed behind. */
export async function writeThrough(
  sandbox: Sandbox,
  options: { readonly holdExecutables: boolean },
  tell: (outcomes: readonly ApplyOutcome[]) => void,
): Promise<string | undefined> {
  try {
    const { outcomes } = await sandbox.apply(options);
    tell(outcomes.filter(({ applied, sensitive, conflict }) => !applied || sensitive || conflict));
    const behind = outcomes.filter(({ applied }) => !applied);
    if (behind.length === 0) return undefined;
    return behind.map(({ change, reason }) => `[not written to the project: ${change.path}: ${reason}]`).join("\n");
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    return `[not written to the project: ${error.message}]`;
  }
}
