import type { ExecRequest } from "@agentfense/server/isolation";
import { type Command, UsageError } from "../command.ts";
import { print, warn } from "../output.ts";
import { exitCodeAfter, reportChanges, settleChanges } from "../run/changes.ts";
import { exitCodeOf, printJson, runToEnd, warnOfLimits } from "../run/command-output.ts";
import { DeltaPlace } from "../run/delta-place.ts";
import { inSandbox } from "../run/embedded.ts";
import { explainRequest } from "../run/explanation.ts";
import { Interruption } from "../run/interruption.ts";
import { parseDuration } from "../run/quantities.ts";
import { readSandboxRequest, SANDBOX_HELP, type SandboxRequest } from "../run/sandbox-request.ts";
import { inputToPassOn } from "../run/streaming.ts";

const HELP = `Usage: agentfense run [OPTIONS] [DIR] -- COMMAND [ARGUMENT…]

Runs COMMAND in a sandbox that sees DIR (default: where you are) at /workspace as the rules allow, and lists what it
changed. DIR itself is not written unless you ask for it.

COMMAND with arguments is run as it stands. COMMAND alone is a line for the shell:
  agentfense run -- npm test
  agentfense run -- 'grep -rn TODO src | head'

Its output is passed on as it comes, input from a pipe or a file is passed in; what we have to say goes to stderr.

${SANDBOX_HELP}

Other:
  --explain         run nothing; say what the sandbox would show, find in PATH and leave out
  --timeout TIME    kill it after 30s, 10m … (default: never)
  --json            one JSON object at the end instead: { exitCode, signal, timedOut, truncated, outOfMemory, durationMs,
                    stdout, stderr, changes, applied, problem, delta }; of stdout and stderr at most 10 MiB each
  -h, --help        this text

Exit codes: that of the command; 128 + n when signal n killed it; 123 when it ended with 0 but --apply could not write back
all of its changes; 124 when its time was up; 125 when it could not be run; 2 when this command was given wrongly; 130 after
Ctrl-C, 143 after SIGTERM.
`;

export const run: Command = { help: HELP, handlesClosedOutput: true, run: runCommand };

async function runCommand(args: readonly string[]): Promise<number> {
  const { request, exec, json, explain } = await readRequest(args);
  if (explain) {
    await print(explainRequest(request, { json }));
    return 0;
  }
  using interruption = new Interruption();
  await using delta = await DeltaPlace.open(request);
  try {
    return await carryOut(request, exec, json, delta, interruption);
  } catch (error) {
    if (interruption.exitCode === undefined) throw error;
    if (delta.isKept) warn(`interrupted; what it changed so far is kept in ${delta.path}`);
    return interruption.exitCode;
  }
}

async function carryOut(
  request: SandboxRequest,
  exec: ExecRequest,
  json: boolean,
  delta: DeltaPlace,
  interruption: Interruption,
): Promise<number> {
  const { signal } = interruption;
  const outcome = await inSandbox(request, delta.path, interruption, (sandbox) =>
    runToEnd(sandbox, exec, { json, signal }),
  );
  const exitCode = exitCodeOf(outcome);
  signal.throwIfAborted();
  const settlement = await settleChanges(request, delta, { exitCode, signal });
  signal.throwIfAborted();
  if (json) await printJson(outcome, settlement);
  else {
    warnOfLimits(outcome);
    reportChanges(request, settlement, exitCode);
  }
  return exitCodeAfter(settlement, exitCode);
}

async function readRequest(args: readonly string[]) {
  const separator = args.indexOf("--");
  if (separator < 0) throw new UsageError("run takes a command after --, as in: agentfense run -- npm test");
  const [first, ...rest] = args.slice(separator + 1);
  if (first === undefined || first === "") throw new UsageError("there is no command after --");
  const { request, values } = await readSandboxRequest("run", args.slice(0, separator), {
    timeout: { type: "string" },
    json: { type: "boolean" },
    explain: { type: "boolean" },
  });
  const { timeout, json, explain } = values as { timeout?: string; json?: boolean; explain?: boolean };
  const input = inputToPassOn();
  const exec: ExecRequest = {
    command: rest.length === 0 ? first : [first, ...rest],
    ...(input === undefined ? {} : { stdin: input }),
    ...(request.workdir === undefined ? {} : { workdir: request.workdir }),
    ...(timeout === undefined ? {} : { timeoutMs: parseDuration(timeout, "--timeout") }),
  };
  return { request, exec, json: json === true, explain: explain === true };
}
