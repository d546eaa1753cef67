import {
  type ApplyReport,
  applyChanges,
  type Change,
  ChangesError,
  foldChanges,
  type ListedChange,
  listChanges,
} from "@agentfense/server/isolation";
import { CommandFailure } from "../command-failure.ts";
import { warn } from "../output.ts";
import { Progress } from "../progress/progress.ts";
import { type Paint, paintFor, printable, printableSentence, type Style } from "../terminal.ts";
import { counted, countsText, quoted, summaryLines } from "../wording.ts";
import type { RunDelta } from "./run-delta.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/** What became of the changes at the end of a run. */
export interface Settlement {
  readonly changes: readonly Change[];
  /** Present when they were written back, or some of them were. */
  readonly applied?: ApplyReport["changes"];
  /** Why they could not be written back at all. */
  readonly problem?: string;
  /** Where those are that the codebase does not have, if they are kept. */
  readonly delta?: string;
}

/** The command did well, and its changes are not all in the codebase: a code of our own, or a script would take them for applied. */
const NOT_WRITTEN_BACK = 123;

/**
 * Lists what a delta holds and, if that was asked for and the command earned it, writes it back. What could not be written
 * back is kept, wherever the delta is.
 */
export async function settleChanges(
  request: SandboxRequest,
  delta: RunDelta,
  outcome: { readonly exitCode: number; readonly signal: AbortSignal },
): Promise<Settlement> {
  const isEarned = request.apply === "always" || (request.apply === "success" && outcome.exitCode === 0);
  try {
    const settlement = await settle(request, delta.path, { isEarned, signal: outcome.signal });
    if (isEarned && !isWrittenBack(settlement)) await delta.keep();
    return delta.isKept && isLeft(settlement) ? { ...settlement, delta: delta.path } : settlement;
  } catch (error) {
    if (isEarned) await delta.keep();
    throw error;
  }
}

async function settle(
  request: SandboxRequest,
  delta: string,
  { isEarned, signal }: { readonly isEarned: boolean; readonly signal: AbortSignal },
): Promise<Settlement> {
  try {
    const changes = await changesOf(request, delta, signal);
    return isEarned && changes.length > 0 ? await writeBack(request, delta, { changes, signal }) : { changes };
  } catch (error) {
    // Whoever asked for them to be written back hears of it as of all that was not, with what the command said.
    if (!isEarned || !(error instanceof CommandFailure)) throw error;
    return { changes: [], problem: error.message };
  }
}

/** What a delta holds. */
export async function changesOf(
  { directory, rules }: Pick<SandboxRequest, "directory" | "rules">,
  delta: string,
  signal: AbortSignal,
): Promise<readonly Change[]> {
  const changes: Change[] = [];
  using listing = new Progress(process.stderr, "looking for changes");
  try {
    for await (const change of listChanges({ delta, lowers: [directory], rules, tellsAll: true, ignores: true })) {
      signal.throwIfAborted();
      changes.push(change);
      listing.count(changes.length, undefined, "found");
    }
    return changes;
  } catch (error) {
    throw error instanceof ChangesError ? new CommandFailure(error.message) : error;
  }
}

/** Writes what a delta holds, or what it holds at some paths, into the directory. */
export async function writeBack(
  { directory, rules, holdsExecutables: holdsSensitive }: SandboxRequest,
  delta: string,
  {
    changes,
    paths,
    signal,
  }: { readonly changes: readonly Change[]; readonly paths?: readonly string[]; readonly signal: AbortSignal },
): Promise<Settlement> {
  using applying = new Progress(process.stderr, "applying");
  const onProgress = (done: number): void => applying.count(done, (paths ?? changes).length, "changes");
  const chosen = paths === undefined ? {} : { paths };
  try {
    const report = await applyChanges({
      delta,
      lower: directory,
      rules,
      holdsSensitive,
      signal,
      onProgress,
      ...chosen,
    });
    return { changes, applied: report.changes };
  } catch (error) {
    if (!(error instanceof ChangesError)) throw error;
    return { changes, problem: error.message };
  }
}

function isWrittenBack({ applied = [], problem }: Settlement): boolean {
  return problem === undefined && applied.every(({ outcome }) => outcome === "applied");
}

/** There are changes that the codebase does not have. */
function isLeft({ changes, applied, problem }: Settlement): boolean {
  return problem !== undefined || (applied === undefined ? changes.length > 0 : !isWrittenBack({ changes, applied }));
}

/** The command's own, unless that would say that all went well when it did not. */
export function exitCodeAfter(settlement: Settlement, exitCode: number): number {
  return exitCode === 0 && !isWrittenBack(settlement) ? NOT_WRITTEN_BACK : exitCode;
}

/** More than this nobody reads; `--all` asks for it. */
const SHOWN = 50;

/** The end of a run for a person, on stderr: stdout is the command's alone. */
export function reportChanges(request: SandboxRequest, settlement: Settlement, exitCode: number): void {
  const { changes, applied, problem } = settlement;
  if (changes.length === 0 && problem === undefined) {
    warn("no changes");
    return;
  }
  listForPeople(request, changes);
  if (problem !== undefined) warn(`nothing was written back: ${problem}`);
  else if (applied !== undefined) reportApplied(request, applied);
  else if (request.apply === "success") {
    warn(`not written back, because the command ended with ${exitCode}; --apply=always does it all the same`);
  }
  if (isLeft(settlement)) warn(whereTheyAre(request, settlement));
}

export function listForPeople({ listsAll }: Pick<SandboxRequest, "listsAll">, changes: readonly Change[]): void {
  warn(`${counted(changes.length, "change")}:`);
  const paint = paintFor(process.stderr, process.env);
  const describe = (change: ListedChange): string => describeChange(change, paint);
  if (listsAll) printAll(changes.map(describe));
  else printSome(summaryLines(foldChanges(changes), describe));
}

export function reportApplied({ directory }: SandboxRequest, applied: ApplyReport["changes"]): void {
  const left = applied.filter(({ outcome }) => outcome !== "applied");
  const done = `${counted(applied.length - left.length, "change")} written back to ${printable(directory)}`;
  warn(left.length === 0 ? done : `${done}, ${left.length} not:`);
  const reasons = left.map(
    ({ outcome, path, reason = "" }) => `${outcome.padEnd(9)} ${printable(path)}: ${printableSentence(reason)}`,
  );
  const remarks = applied.flatMap(({ outcome, path, sensitive, overwroteNewer }) => {
    if (outcome !== "applied") return [];
    if (sensitive) return [`look at   ${printable(path)}: your machine may run or trust it without being asked`];
    return overwroteNewer ? [`replaced  ${printable(path)}: it had changed in the meantime`] : [];
  });
  printSome([...reasons, ...remarks]);
}

function whereTheyAre({ apply }: SandboxRequest, { applied, problem, delta }: Settlement): string {
  if (delta === undefined) {
    return `they are thrown away; --delta DIR keeps them${apply === "never" ? ", --apply writes them back" : ""}`;
  }
  const place = `kept in ${printable(delta)}`;
  const look = `agentfense diff --delta ${quoted(delta)}`;
  if (applied === undefined && problem === undefined) return `they are ${place}; see them with: ${look}`;
  return `what was not written back is ${place}; see it with: ${look}, try again with: agentfense apply --delta ${quoted(delta)}`;
}

const KIND_STYLES = { added: "good", modified: "doubtful", deleted: "bad", renamed: "notable" } as const;

function describeChange({ kind, path, type, size, sensitive, folded }: ListedChange, paint: Paint): string {
  const mark = sensitive ? "!" : " ";
  const word = (text: string, style: Style): string =>
    `${paint(style, text)}${sensitive ? paint("bad", mark) : mark}${" ".repeat(Math.max(0, 9 - text.length))}`;
  if (folded !== undefined) return `${word("ignored", "faint")}${printable(path)} (${countsText(folded)})`;
  const what = type === "directory" ? "/" : kind === "deleted" ? "" : ` (${size} bytes)`;
  return `${word(kind, KIND_STYLES[kind])}${printable(path)}${what}`;
}

function printAll(lines: readonly string[]): void {
  for (const line of lines) process.stderr.write(`  ${line}\n`);
}

function printSome(lines: readonly string[]): void {
  printAll(lines.slice(0, SHOWN));
  if (lines.length > SHOWN)
    process.stderr.write(`  … and ${lines.length - SHOWN} more lines; --all lists everything\n`);
}
