import {
  type ApplyReport,
  applyChanges,
  type Change,
  type ChangeReport,
  foldChanges,
  listChanges,
} from "@agentfense/server/isolation";
import { print, warn } from "../output.ts";
import { Progress } from "../progress/progress.ts";
import { type Paint, paintFor, printable } from "../terminal.ts";
import { counted, countsText, KIND_LETTERS, shownPath } from "../wording.ts";
import { paintMark } from "./colours.ts";
import { explainRefusal, type KeptDelta, requirePlaces, rulesOf } from "./kept-delta.ts";

export interface ApplyValues {
  readonly delta?: string | undefined;
  readonly preset?: string | undefined;
  readonly rules?: string | undefined;
  readonly all?: boolean | undefined;
  readonly "hold-executables"?: boolean | undefined;
  readonly "dry-run"?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** `agentfense apply` */
export async function apply(values: ApplyValues, given: string | undefined, paths: readonly string[]): Promise<number> {
  const kept = await requirePlaces(values.delta, given);
  const { delta, directory } = kept;
  const rules = await rulesOf(kept, values);
  const lists = values.all === true || values.json === true || paths.length > 0;
  const ignored = lists ? new Map<string, Change>() : await ignoredChanges(kept).catch(explainRefusal);
  using progress = new Progress(process.stderr, "applying");
  const report = await applyChanges({
    delta,
    lower: directory,
    rules,
    dryRun: values["dry-run"] === true,
    holdsSensitive: values["hold-executables"] === true,
    onProgress: (done) => progress.count(done, undefined, "changes"),
    ...(paths.length > 0 && { paths }),
  }).catch(explainRefusal);
  await print(
    values.json
      ? `${JSON.stringify(report, undefined, 2)}\n`
      : describe(report, ignored, paintFor(process.stdout, process.env)),
  );
  if (report.changes.every(({ outcome }) => outcome === "applied")) return 0;
  if (kept.record !== undefined && rules === kept.record.rules && report.changes.some(isRefused)) {
    warn(
      `the rules were those of the last run with this delta: ${kept.record.label}; --preset or --rules takes others`,
    );
  }
  return 1;
}

/** The ignored changes by path: the .gitignore files are looked at before anything is applied to them. */
async function ignoredChanges({ delta, directory, record }: KeptDelta): Promise<ReadonlyMap<string, Change>> {
  const found = new Map<string, Change>();
  const spec = { delta, lowers: [directory], rules: record?.rules, tellsAll: true, ignores: true };
  for await (const change of listChanges(spec)) if (change.ignoredIn !== undefined) found.set(change.path, change);
  return found;
}

function isRefused({ outcome }: ChangeReport): boolean {
  return outcome === "refused";
}

function describe(report: ApplyReport, ignored: ReadonlyMap<string, Change>, paint: Paint): string {
  const { changes, dryRun } = report;
  if (changes.length === 0) return "no changes\n";
  const count = (outcome: ChangeReport["outcome"]): number => changes.filter((one) => one.outcome === outcome).length;
  const left = (["refused", "held", "failed"] as const).filter((outcome) => count(outcome) > 0);
  const total = [
    `${counted(count("applied"), "change")} ${dryRun ? "would be applied" : "applied"}`,
    ...left.map((outcome) => `${count(outcome)} ${outcome === "held" ? "held back" : outcome}`),
  ];
  const isFolded = ({ outcome, path }: ChangeReport): boolean => outcome === "applied" && ignored.has(path);
  const lines = changes.filter((change) => !isFolded(change)).map((change) => line(change, paint));
  const folded = changes.filter(isFolded);
  for (const change of foldChanges(folded.map(({ path }) => ignored.get(path)!))) {
    const mark = change.sensitive ? "!" : " ";
    const counts = change.folded ? countsText(change.folded) : change.kind;
    lines.push(
      `${paintMark("I", mark, paint)} ${change.folded ? printable(change.path) : shownPath(change)}  (${counts})`,
    );
  }
  return `${[...lines, total.join(", ")].join("\n")}\n`;
}

function line(change: ChangeReport, paint: Paint): string {
  const remarks = [
    ...(change.outcome === "applied" || change.outcome === "held" ? [] : [change.outcome]),
    ...(change.reason === undefined ? [] : [printable(change.reason)]),
    ...(change.overwroteNewer ? ["the file in DIR was newer than the sandbox's copy"] : []),
    ...(change.sensitive && change.outcome !== "held" ? ["the host may run or trust this unasked"] : []),
  ];
  const mark = change.sensitive ? "!" : " ";
  return `${paintMark(KIND_LETTERS[change.kind], mark, paint)} ${shownPath(change)}${remarks.length > 0 ? `  (${remarks.join("; ")})` : ""}`;
}
