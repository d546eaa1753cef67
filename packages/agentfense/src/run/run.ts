import type { ExecRequest } from "@agentfense/server/isolation";
import { UsageError } from "../command-failure.ts";
import { print, warn } from "../output.ts";
import { Interruption } from "../stop-signals.ts";
import { exitCodeAfter, reportChanges, settleChanges } from "./changes.ts";
import { exitCodeOf, inputToPassOn, printJson, runToEnd, warnOfLimits } from "./command-output.ts";
import { inSandbox } from "./embedded.ts";
import { explainRequest } from "./explanation.ts";
import type { SandboxValues } from "./options.ts";
import { converse } from "./raw-terminal.ts";
import { RunDelta } from "./run-delta.ts";
import { readSandboxRequest, type SandboxRequest } from "./sandbox-request.ts";

interface OnDirectory<Values = SandboxValues> {
  readonly values: Values;
  readonly given: readonly [directory: string | undefined];
}

interface Asked {
  readonly timeout?: number | undefined;
  readonly json?: boolean | undefined;
  readonly explain?: boolean | undefined;
}

/** `agentfense run` */
export async function runCommand(
  call: OnDirectory<SandboxValues & Asked> & { readonly command: readonly string[] },
): Promise<number> {
  const { values, given } = call;
  const { request } = await readSandboxRequest(values, given[0]);
  const json = values.json === true;
  if (values.explain) {
    await print(explainRequest(request, { json }));
    return 0;
  }
  const { timeout } = values;
  const exec = { ...execOf(call.command, request), ...(timeout === undefined ? {} : { timeoutMs: timeout }) };
  return await interruptibly(request, async (delta, interruption) => {
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
    signal.throwIfAborted();
    return exitCodeAfter(settlement, exitCode);
  });
}

/** `agentfense shell` */
export async function runShell({ values, given }: OnDirectory): Promise<number> {
  const { request } = await readSandboxRequest(values, given[0]);
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw new UsageError("shell needs a terminal; for a single command there is: agentfense run -- COMMAND");
  }
  return await interruptibly(request, async (delta, interruption) => {
    const { signal } = interruption;
    const { exitCode } = await inSandbox(request, delta.path, interruption, (sandbox) =>
      converse(sandbox, request, { signal }),
    );
    signal.throwIfAborted();
    const settlement = await settleChanges(request, delta, { exitCode, signal });
    reportChanges(request, settlement, exitCode);
    return exitCodeAfter(settlement, exitCode);
  });
}

/** A single word is a line for the shell; its input is ours, where that is no terminal. */
export function execOf([first = "", ...rest]: readonly string[], { workdir }: SandboxRequest): ExecRequest {
  const input = inputToPassOn();
  return {
    command: rest.length === 0 ? first : [first, ...rest],
    ...(input === undefined ? {} : { stdin: input }),
    ...(workdir === undefined ? {} : { workdir }),
  };
}

/** Works on a delta until somebody interrupts that: then the exit code says so, and what is kept is told. */
async function interruptibly(
  request: SandboxRequest,
  work: (delta: RunDelta, interruption: Interruption) => Promise<number>,
): Promise<number> {
  using interruption = new Interruption();
  await using delta = await RunDelta.open(request);
  try {
    return await work(delta, interruption);
  } catch (error) {
    if (interruption.exitCode === undefined) throw error;
    if (delta.isKept) warn(`interrupted; what was changed so far is kept in ${delta.path}`);
    return interruption.exitCode;
  }
}
