import { type ExecInputSchema, SandboxService } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Command, CommandOptions } from "../model/options.ts";
import type { CommandEvent, RunResult } from "../model/records.ts";
import type { ExecOptions, InteractiveOptions } from "../model/requests.ts";
import type { CallStream } from "./call-stream.ts";
import { pieces } from "./content.ts";
import { execMessage } from "./messages/command.ts";
import type { Rpc } from "./rpc.ts";
import { commandEvents, patienceFor, resultOf } from "./running.ts";

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
