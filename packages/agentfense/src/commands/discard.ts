import { discardChanges } from "@agentfense/server/isolation";
import { explainRefusal, requireDelta } from "../changes/kept-delta.ts";
import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { print } from "../output.ts";
import { printable } from "../terminal.ts";

const HELP = `Usage: agentfense discard --delta DELTA (--all | PATH…)

Removes changes from the delta kept by run or mount, so that the codebase shows again there: those at and below each PATH
(/src/main.ts or src/main.ts), or all. They cannot be brought back.

  --delta DELTA     the directory given to run or mount as --delta; it must not be in use
  --all             everything
  --json            { discarded, failed } instead
  -h, --help        this text
`;

const OPTIONS = { delta: { type: "string" }, all: { type: "boolean" }, json: { type: "boolean" } } as const;

export const discard: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals: paths } = parseArguments(args, OPTIONS);
  if ((values.all === true) === paths.length > 0) throw new UsageError("discard takes --all or one or more PATHs");
  const delta = await requireDelta(values.delta);
  const report = await discardChanges({ delta, ...(values.all ? {} : { paths }) }).catch(explainRefusal);
  if (values.json) await print(`${JSON.stringify(report, undefined, 2)}\n`);
  else {
    for (const path of report.discarded) await print(`discarded ${printable(path)}\n`);
    for (const { path, reason } of report.failed) await print(`failed ${printable(path)}  (${printable(reason)})\n`);
  }
  return report.failed.length === 0 ? 0 : 1;
}
