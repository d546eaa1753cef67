import type { SandboxClient } from "../../client/client.ts";
import type { Command, CommandOptions, OutputCallbacks } from "../../model/options.ts";
import type { SessionStreamOptions } from "../../model/requests.ts";
import { Execution, type ExecutionParts } from "./execution.ts";
import { StdinFeed } from "./stdin.ts";

/** Starts a command whose input is given now, or else may be sent while it runs. */
export function startCommand(
  client: SandboxClient,
  sandboxId: string,
  command: Command,
  options: CommandOptions & OutputCallbacks,
): Execution {
  if (options.stdin !== undefined) return startClosedCommand(client, sandboxId, command, options);
  const { stdin: _stdin, ...rest } = callOptions(options);
  const stdin = new StdinFeed();
  const { onStdout, onStderr, signal } = options;
  const open: OpenCall = (stop) => client.execInteractive(sandboxId, command, { ...rest, stdin, signal: stop });
  return new Execution({ command, open, stdin, onStdout, onStderr, signal });
}

/** Starts a command that gets no other input than this, if any. */
export function startClosedCommand(
  client: SandboxClient,
  sandboxId: string,
  command: Command,
  options: CommandOptions & OutputCallbacks,
): Execution {
  const { onStdout, onStderr, signal } = options;
  const open: OpenCall = (stop) => client.execStream(sandboxId, command, { ...callOptions(options), signal: stop });
  return new Execution({ command, open, onStdout, onStderr, signal });
}

/** Starts a line in the shell of a session. */
export function startSessionCommand(
  client: SandboxClient,
  sessionId: string,
  command: string,
  options: SessionStreamOptions & OutputCallbacks,
): Execution {
  const { onStdout, onStderr, signal, timeoutMs } = options;
  const open: OpenCall = (stop) => client.sessionExecStream(sessionId, command, { timeoutMs, signal: stop });
  return new Execution({ command, open, onStdout, onStderr, signal });
}

type OpenCall = ExecutionParts["open"];

/** What is not ours goes on to the client, which refuses what nobody knows. */
function callOptions(options: CommandOptions & OutputCallbacks): CommandOptions {
  const { onStdout: _out, onStderr: _err, signal: _signal, ...rest } = options;
  return rest;
}
