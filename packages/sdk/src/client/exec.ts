import {
  type ExecInputSchema,
  type ExecOutput,
  type ExecResult,
  ExecResultSchema,
  SandboxService,
} from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { CommandExecutionError, CommandTimeoutError, ConnectionError } from "../errors.ts";
import type { Command, CommandOptions } from "../model/options.ts";
import type { CommandEvent, RunResult } from "../model/records.ts";
import type { ExecOptions, InteractiveOptions } from "../model/requests.ts";
import type { CallStream } from "./call-stream.ts";
import { pieces } from "./content.ts";
import { commandEventOf, commandText, execMessage, runResultOf } from "./messages/command.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SandboxService;

export class ExecCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  async exec(sandboxId: string, command: Command, options: ExecOptions = {}): Promise<RunResult> {
    const { signal, timeoutMs } = options;
    const request = execMessage(sandboxId, command, options);
    const call = this.#rpc.unary(method.exec, request, { signal, timeoutMs: patienceFor(timeoutMs) });
    return await resultOf(call, command, options);
  }

  execStream(sandboxId: string, command: Command, options: CommandOptions = {}): CallStream<CommandEvent> {
    const { signal, timeoutMs } = options;
    const request = execMessage(sandboxId, command, options);
    const outputs = this.#rpc.serverStream(method.execStream, request, { signal, timeoutMs: patienceFor(timeoutMs) });
    return commandEvents(outputs, command);
  }

  execInteractive(
    sandboxId: string,
    command: Command,
    { stdin, ...options }: InteractiveOptions,
  ): CallStream<CommandEvent> {
    const { signal, timeoutMs } = options;
    const inputs = execInputs(execMessage(sandboxId, command, options), stdin);
    const outputs = this.#rpc.bidiStream(method.execInteractive, inputs, { signal, timeoutMs: patienceFor(timeoutMs) });
    return commandEvents(outputs, command);
  }
}

type Input = MessageInitShape<typeof ExecInputSchema>;

/** The messages of a command's input. Letting go of them lets go of `stdin`, also while it is waited for. */
function execInputs(start: ReturnType<typeof execMessage>, stdin: AsyncIterable<Uint8Array>): AsyncIterable<Input> {
  const source = stdin[Symbol.asyncIterator]();
  const inputs = (async function* (): AsyncGenerator<Input, void, undefined> {
    yield { input: { case: "start", value: start } };
    for (let next = await source.next(); next.done !== true; next = await source.next()) {
      for (const value of pieces(next.value)) yield { input: { case: "stdin", value } };
    }
    yield { input: { case: "end", value: true } };
  })();
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => inputs.next(),
      async return() {
        await source.return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}

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
