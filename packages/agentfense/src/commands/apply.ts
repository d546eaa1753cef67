import type { Rule } from "@agentfense/permission";
import {
  type ApplyReport,
  applyChanges,
  type Change,
  type ChangeReport,
  foldChanges,
  listChanges,
} from "@agentfense/server/isolation";
import { paintMark } from "../changes/colours.ts";
import { explainRefusal, type KeptDelta, requirePlaces } from "../changes/kept-delta.ts";
import { counted, countsText, KIND_LETTERS, shownPath } from "../changes/table.ts";
import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { print, warn } from "../output.ts";
import { Progress } from "../progress/progress.ts";
import { rulesFor } from "../rules-option.ts";
import { type Paint, paintFor, printable } from "../terminal.ts";

const HELP = `Usage: agentfense apply --delta DELTA [OPTIONS] [DIR [PATH…]]

Writes what the delta kept by run or mount changes into the directory it was made over (DIR, if given, must be that one);
with PATHs (/src/main.ts or src/main.ts), only there and below. Each entry is checked against the rules of the last run
again: only paths of level write change. What was applied leaves the delta, the rest stays. Exits 1 if something was
refused, held back or failed.

  --delta DELTA     the directory given to run or mount as --delta; it must not be in use
  --preset NAME     check against this preset instead of the rules that the delta remembers
  --rules FILE      the same with a JSON or YAML list of { pattern, permission, type?, priority? }
  --all             list each change; otherwise applied ones that the .gitignore files of the directory name are counted,
                    directory by directory. They are applied all the same, unless PATHs leave them out
  --hold-executables  leave in the delta what ! marks: what the host may run or trust unasked, such as git hooks, editor
                    tasks, CI, lock files, package.json, Makefile
  --dry-run         say what would happen, and change nothing
  --json            { dryRun, changes } instead
  -h, --help        this text
`;

const OPTIONS = {
  delta: { type: "string" },
  preset: { type: "string" },
  rules: { type: "string" },
  "hold-executables": { type: "boolean" },
  "dry-run": { type: "boolean" },
  all: { type: "boolean" },
  json: { type: "boolean" },
} as const;

export const apply: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [given, ...paths] = positionals;
  const kept = await requirePlaces(values.delta, given);
  const { delta, directory } = kept;
  const rules = await rulesToApplyBy(kept, values);
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

/** By path: the .gitignore files are looked at before anything is applied to them. */
async function ignoredChanges({ delta, directory, record }: KeptDelta): Promise<ReadonlyMap<string, Change>> {
  const found = new Map<string, Change>();
  const spec = { delta, lowers: [directory], rules: record?.rules, tellsAll: true, ignores: true };
  for await (const change of listChanges(spec)) if (change.ignoredIn !== undefined) found.set(change.path, change);
  return found;
}

function isRefused({ outcome }: ChangeReport): boolean {
  return outcome === "refused";
}

/** Those that are named, else those of the last run; never the default of a run, which knows nothing of this delta. */
async function rulesToApplyBy(
  { delta, record }: KeptDelta,
  named: { readonly preset?: string | undefined; readonly rules?: string | undefined },
): Promise<readonly Rule[]> {
  if (named.preset !== undefined || named.rules !== undefined) return (await rulesFor(named, undefined)).policy.rules;
  if (record !== undefined) return record.rules;
  throw new UsageError(`the delta ${printable(delta)} does not tell its rules: give --preset or --rules`);
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
