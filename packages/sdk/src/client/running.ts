import { type ExecOutput, type ExecResult, ExecResultSchema } from "@agentfense/protocol/sandbox";
import { ConnectError } from "@connectrpc/connect";
import { CommandExecutionError, CommandTimeoutError, ConnectionError } from "../errors.ts";
import type { Command } from "../model/options.ts";
import type { CommandEvent, RunResult } from "../model/records.ts";
import type { CallStream } from "./call-stream.ts";
import { commandEventOf, commandText, runResultOf } from "./messages/command.ts";

/** The server ends a command in time by itself; our own patience is only for a server that does not. */
const GRACE_MS = 31_000;

/** How long to wait for a command's end. Without a timeout it is the server that knows. */
export function patienceFor(timeoutMs: number | undefined): number {
  return timeoutMs === undefined ? Number.POSITIVE_INFINITY : timeoutMs + GRACE_MS;
}

/** The result of a call that runs a command. A timeout is an error on the wire and a result here, unless `check` is wanted. */
export async function resultOf(
  call: Promise<ExecResult>,
  command: Command,
  { check = false }: { readonly check?: boolean | undefined },
): Promise<RunResult> {
  const result = runResultOf(await call.catch(timedOutResult), command);
  if (check) expectSuccess(result);
  return result;
}

/** What `check` asks for. */
export function expectSuccess(result: RunResult): void {
  if (result.timedOut) {
    throw new CommandTimeoutError(`the command ran out of time: ${result.command}`, {
      code: "COMMAND_TIMEOUT",
      result,
    });
  }
  if (result.exitCode === 0) return;
  throw new CommandExecutionError(`the command ended with exit code ${result.exitCode}: ${result.command}`, {
    code: "COMMAND_FAILED",
    result,
  });
}

/** What there was of output travels in the details of the error. */
function timedOutResult(error: unknown): ExecResult {
  if (error instanceof CommandTimeoutError && error.cause instanceof ConnectError) {
    const [result] = error.cause.findDetails(ExecResultSchema);
    if (result !== undefined) return result;
  }
  throw error;
}

/** The events of a command, the last of which is its end. */
export function commandEvents(outputs: CallStream<ExecOutput>, command: Command): CallStream<CommandEvent> {
  return outputs.map(commandEventOf, {
    isLast: ({ kind }) => kind === "exit",
    early: () =>
      new ConnectionError(`the server did not say how the command ended: ${commandText(command)}`, {
        code: "CONNECTION_FAILED",
      }),
  });
}
