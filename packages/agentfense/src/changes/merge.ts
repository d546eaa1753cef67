import { RuleError } from "@agentfense/permission";
import {
  type DriverRule,
  type MergeConflict,
  type MergeDelta,
  type MergeReport,
  mergeDeltas,
} from "@agentfense/server/isolation";
import { UsageError } from "../command-failure.ts";
import { print, printJson, warn } from "../output.ts";
import { tableText } from "../table.ts";
import { type Paint, paintFor, printable } from "../terminal.ts";
import { counted, KIND_LETTERS, shownPath } from "../wording.ts";
import { resolveDirectory } from "../workspace-directory.ts";
import { paintMark } from "./colours.ts";
import { explainRefusal, readDeltaRecord, requireApart, requireDelta, requirePlaces, rulesOf } from "./kept-delta.ts";

export interface MergeValues {
  readonly into?: string | undefined;
  readonly strategy?: "ours" | "theirs" | "union" | undefined;
  readonly markers?: boolean | undefined;
  readonly driver?: readonly DriverRule[] | undefined;
  readonly preset?: string | undefined;
  readonly rules?: string | undefined;
  readonly "dry-run"?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** `agentfense merge` */
export async function merge(values: MergeValues, given: readonly string[]): Promise<number> {
  const deltas: MergeDelta[] = [];
  for (const name of given) {
    const isTold = (await readDeltaRecord(await requireDelta(name))) !== undefined;
    const kept = await requirePlaces(name, isTold ? undefined : values.into);
    const { delta, directory: lower } = kept;
    if (deltas.some((known) => known.delta === delta))
      throw new UsageError(`the delta ${printable(name)} is given twice`);
    deltas.push({ name, delta, lower, rules: await rulesOf(kept, values) });
  }
  const into = values.into === undefined ? deltas[0]!.lower : await resolveDirectory(values.into, "--into");
  for (const { delta } of deltas) requireApart(delta, into);
  const report = await mergeDeltas({
    deltas,
    into,
    intoName: values.into ?? into,
    favour: values.strategy,
    markers: values.markers === true,
    drivers: values.driver ?? [],
    dryRun: values["dry-run"] === true,
  }).catch((error: unknown) => {
    if (error instanceof RuleError) throw new UsageError(`--driver: ${error.message}`);
    return explainRefusal(error);
  });
  await (values.json ? printJson(report) : describe(report, values.into ?? into));
  const isDone = report.changes.every(({ outcome }) => outcome === "merged");
  const isSettled = report.conflicts.every(({ settled }) => settled !== undefined && settled !== "markers");
  return isDone && isSettled ? 0 : 1;
}

async function describe({ dryRun, written, changes, conflicts }: MergeReport, into: string): Promise<void> {
  const paint = paintFor(process.stdout, process.env);
  const open = conflicts.filter(({ settled }) => settled === undefined);
  const isRehearsal = dryRun || !written;
  if (open.length === 0) for (const change of changes) await print(`${line(change, paint)}\n`);
  if (conflicts.length > 0) await print(conflictTable(conflicts));
  if (open.length > 0) {
    warn(`nothing ${dryRun ? "would be" : "was"} written: ${counted(open.length, "conflict")} to settle first`);
    return;
  }
  const count = (outcome: string): number => changes.filter((change) => change.outcome === outcome).length;
  const done = `${counted(count("merged"), "change")} ${isRehearsal ? "would be merged" : "merged"} into ${printable(into)}`;
  const left = ["refused", "failed"]
    .filter((outcome) => count(outcome) > 0)
    .map((outcome) => `${count(outcome)} ${outcome}`);
  await print(`${changes.length === 0 ? "no changes" : [done, ...left].join(", ")}\n`);
}

function line(change: MergeReport["changes"][number], paint: Paint): string {
  const remarks = [
    ...(change.from.length === 0 ? [] : [change.from.map(printable).join(" + ")]),
    ...(change.outcome === "merged" ? [] : [change.outcome]),
    ...(change.reason === undefined ? [] : [printable(change.reason)]),
    ...(change.sensitive ? ["the host may run or trust this unasked"] : []),
  ];
  const letter = paintMark(KIND_LETTERS[change.kind], change.sensitive ? "!" : " ", paint);
  return `${letter} ${shownPath(change)}  (${remarks.join("; ")})`;
}

/** Conflicts of one file whose lines are named. */
const SHOWN = 4;

function conflictTable(conflicts: readonly MergeConflict[]): string {
  const rows = conflicts.map(({ kind, path, sides, hunks, settled }) => [
    kind,
    path,
    [...hunks.slice(0, SHOWN).map(({ ours }) => lineNumbers(ours)), ...(hunks.length > SHOWN ? ["…"] : [])].join(" "),
    sides[0],
    sides[1],
    settled ?? "",
  ]);
  return tableText(["CONFLICT", "PATH", "LINES", "OURS", "THEIRS", "SETTLED"], rows);
}

/** "12-14", as our side counts them; where it has none, the line before. */
function lineNumbers({ start, count }: MergeConflict["hunks"][number]["ours"]): string {
  return count <= 1 ? String(start + count) : `${start + 1}-${start + count}`;
}
