import { type ApplyReport, applyChanges, type Change, listChanges } from "@agentfense/server/isolation";
import { explainRefusal } from "../changes/kept-delta.ts";
import { counted } from "../changes/table.ts";
import { warn } from "../output.ts";
import { Progress } from "../progress/progress.ts";
import { type Paint, paintFor, printable, printableSentence } from "../terminal.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/** What became of the changes at the end of a run. */
export interface Settlement {
  readonly changes: readonly Change[];
  /** Present when they were written back. */
  readonly applied?: ApplyReport["changes"];
}

/** Lists what a delta holds and, if that was asked for and the command earned it, writes it back. */
export async function settleChanges(
  request: SandboxRequest,
  delta: string,
  { exitCode, signal }: { readonly exitCode: number; readonly signal: AbortSignal },
): Promise<Settlement> {
  const changes: Change[] = [];
  using listing = new Progress(process.stderr, "looking for changes");
  for await (const change of listChanges({ delta, lowers: [request.directory] })) {
    signal.throwIfAborted();
    changes.push(change);
    listing.count(changes.length, undefined, "found");
  }
  if (!isEarned(request, exitCode) || changes.length === 0) return { changes };
  const { directory: lower, rules } = request;
  using applying = new Progress(process.stderr, "applying");
  const onProgress = (done: number): void => applying.count(done, changes.length, "changes");
  const report = await applyChanges({ delta, lower, rules, signal, onProgress }).catch(explainRefusal);
  return { changes, applied: report.changes };
}

function isEarned({ apply }: SandboxRequest, exitCode: number): boolean {
  return apply === "always" || (apply === "success" && exitCode === 0);
}

/** More than this nobody reads; `agentfense diff` shows a kept delta in full. */
const SHOWN = 50;

/** The end of a run for a person, on stderr: stdout is the command's alone. */
export function reportChanges(request: SandboxRequest, { changes, applied }: Settlement, exitCode: number): void {
  if (changes.length === 0) {
    warn("no changes");
    return;
  }
  warn(`${counted(changes.length, "change")}:`);
  const paint = paintFor(process.stderr, process.env);
  printSome(changes.map((change) => describeChange(change, paint)));
  if (applied !== undefined) reportApplied(request, applied);
  else if (request.apply === "success") {
    warn(`not written back, because the command ended with ${exitCode}; --apply=always does it all the same`);
  }
  const left = applied === undefined || applied.some(({ outcome }) => outcome !== "applied");
  if (left) warn(whereTheyAre(request));
}

function reportApplied({ directory }: SandboxRequest, applied: ApplyReport["changes"]): void {
  const done = applied.filter(({ outcome }) => outcome === "applied");
  warn(`${counted(done.length, "change")} written back to ${printable(directory)}`);
  const remarks = applied.flatMap(({ outcome, path, reason, sensitive, overwroteNewer }) => {
    const why = reason ?? (overwroteNewer ? "it had changed in the meantime" : "");
    if (outcome !== "applied") return [`${outcome.padEnd(9)} ${printable(path)}: ${printableSentence(why)}`];
    if (sensitive) return [`look at  ${printable(path)}: your machine may run or trust it without being asked`];
    return overwroteNewer ? [`replaced  ${printable(path)}: ${printableSentence(why)}`] : [];
  });
  printSome(remarks);
}

function whereTheyAre({ keptDelta, directory, apply }: SandboxRequest): string {
  if (keptDelta === undefined) {
    return `they are thrown away; --delta DIR keeps them${apply === "never" ? ", --apply writes them back" : ""}`;
  }
  const [delta, codebase] = [keptDelta, directory].map(quoted);
  return `they are kept in ${printable(keptDelta)}; see them with: agentfense diff --delta ${delta} ${codebase}`;
}

const KIND_STYLES = { added: "good", modified: "doubtful", deleted: "bad", renamed: "notable" } as const;

function describeChange({ kind, path, type, size }: Change, paint: Paint): string {
  const what = type === "directory" ? "/" : kind === "deleted" ? "" : ` (${size} bytes)`;
  return `${paint(KIND_STYLES[kind], kind.padEnd(9))} ${printable(path)}${what}`;
}

function printSome(lines: readonly string[]): void {
  for (const line of lines.slice(0, SHOWN)) process.stderr.write(`  ${line}\n`);
  if (lines.length > SHOWN) process.stderr.write(`  … and ${lines.length - SHOWN} more\n`);
}

/** A path as one word of a command line that can be typed. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${printable(path).replaceAll("'", "'\\''")}'`;
}
