import { type ApplyReport, applyChanges, type ChangeReport } from "@agentfense/server/isolation";
import { paintMark } from "../changes/colours.ts";
import { explainRefusal, requirePlaces } from "../changes/kept-delta.ts";
import { counted, KIND_LETTERS, shownPath } from "../changes/table.ts";
import { type Command, type ExitCode, parseArguments } from "../command.ts";
import { print } from "../output.ts";
import { Progress } from "../progress/progress.ts";
import { chooseRules, RULES_HELP, RULES_OPTIONS } from "../rules-option.ts";
import { type Paint, paintFor, printable } from "../terminal.ts";

const HELP = `Usage: agentfense apply --delta DELTA [OPTIONS] DIR [PATH…]

Writes what the delta kept by run or mount changes into DIR; with PATHs (/src/main.ts or src/main.ts), only there and
below. Each entry is checked against the rules again: only paths of level write change. What was applied leaves the delta,
the rest stays. Exits 1 if something was refused or failed.

Rules:
${RULES_HELP}

Other:
  --delta DELTA     the directory given to run or mount as --delta; it must not be in use
  --dry-run         say what would happen, and change nothing
  --json            { dryRun, changes } instead
  -h, --help        this text
`;

const OPTIONS = {
  ...RULES_OPTIONS,
  delta: { type: "string" },
  "dry-run": { type: "boolean" },
  json: { type: "boolean" },
} as const;

export const apply: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [given, ...paths] = positionals;
  const { delta, directory } = await requirePlaces(values.delta, given);
  const { policy } = await chooseRules(values, directory);
  using progress = new Progress(process.stderr, "applying");
  const report = await applyChanges({
    delta,
    lower: directory,
    rules: policy.rules,
    dryRun: values["dry-run"] === true,
    onProgress: (done) => progress.count(done, undefined, "changes"),
    ...(paths.length > 0 && { paths }),
  }).catch(explainRefusal);
  await print(
    values.json ? `${JSON.stringify(report, undefined, 2)}\n` : describe(report, paintFor(process.stdout, process.env)),
  );
  return report.changes.every(({ outcome }) => outcome === "applied") ? 0 : 1;
}

function describe(report: ApplyReport, paint: Paint): string {
  const { changes, dryRun } = report;
  if (changes.length === 0) return "no changes\n";
  const count = (outcome: string): number => changes.filter((change) => change.outcome === outcome).length;
  const [applied, refused, failed] = ["applied", "refused", "failed"].map(count) as [number, number, number];
  const total = [
    `${counted(applied, "change")} ${dryRun ? "would be applied" : "applied"}`,
    ...(refused > 0 ? [`${refused} refused`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return `${changes.map((change) => line(change, paint)).join("\n")}\n${total.join(", ")}\n`;
}

function line(change: ChangeReport, paint: Paint): string {
  const remarks = [
    ...(change.outcome === "applied" ? [] : [change.outcome]),
    ...(change.reason === undefined ? [] : [printable(change.reason)]),
    ...(change.overwroteNewer ? ["the file in DIR was newer than the sandbox's copy"] : []),
    ...(change.sensitive ? ["the host may run or trust this unasked"] : []),
  ];
  const mark = change.sensitive ? "!" : " ";
  return `${paintMark(KIND_LETTERS[change.kind], mark, paint)} ${shownPath(change)}${remarks.length > 0 ? `  (${remarks.join("; ")})` : ""}`;
}
