import { SandboxService, type TerminalInputSchema } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectionError, SandboxNotRunningError } from "../errors.ts";
import type { OpenTerminalOptions, TerminalConnection, TerminalSize } from "../model/requests.ts";
import { type CallStream, InputQueue } from "./call-stream.ts";
import { pieces } from "./content.ts";
import { sandboxOf } from "./messages/sandbox.ts";
import { uint32Of } from "./messages/values.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SandboxService;
/** 128 + SIGHUP. */
const HUNG_UP = 129;

type Input = MessageInitShape<typeof TerminalInputSchema>;

export async function openTerminal(
  rpc: Rpc,
  sandboxId: string,
  { argv = [], env, workdir = "", columns, rows, signal }: OpenTerminalOptions,
): Promise<TerminalConnection> {
  // A program may wait for input and print nothing, so that a terminal that is open looks like one that is being opened. What
  // mostly prevents one is asked for before.
  const { status, statusReason } = sandboxOf(await rpc.unary(method.getSandbox, { sandboxId }, { signal }));
  const isPaused = status === "paused";
  if (status !== "running" && !(isPaused && statusReason === "idle")) {
    throw new SandboxNotRunningError(`sandbox is not running: it is ${status}`, {
      code: isPaused ? "SANDBOX_PAUSED" : "SANDBOX_NOT_RUNNING",
      details: { sandbox_id: sandboxId, status },
    });
  }
  const size = sizeMessage({ columns, rows });
  const open: Input = {
    input: { case: "open", value: { sandboxId, argv: [...argv], env: { ...env }, workdir, size } },
  };
  return new OpenTerminal((inputs) => rpc.bidiStream(method.openTerminal, startingWith(open, inputs), { signal }));
}

function sizeMessage({ columns, rows }: TerminalSize) {
  return { columns: uint32Of(columns, "columns"), rows: uint32Of(rows, "rows") };
}

export async function* startingWith<T>(first: T, rest: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  yield first;
  yield* rest;
}

interface Output {
  readonly data: Uint8Array;
  readonly exitCode?: number | undefined;
}

class OpenTerminal implements TerminalConnection {
  readonly output: AsyncIterable<Uint8Array>;
  readonly exit: Promise<{ readonly exitCode: number }>;
  readonly #inputs = new InputQueue<Input>();
  readonly #outputs: CallStream<Output>;
  #ended!: (exitCode: number) => void;
  #failed!: (error: unknown) => void;
  #closed = false;

  constructor(call: (inputs: AsyncIterable<Input>) => CallStream<Output>) {
    this.exit = new Promise((resolve, reject) => {
      this.#ended = (exitCode) => resolve({ exitCode });
      this.#failed = reject;
    });
    // Whoever reads the output learns of a failure there.
    this.exit.catch(() => {});
    this.#outputs = call(this.#inputs);
    // The terminal opens whether or not anybody reads yet.
    const first = this.#outputs.next();
    first.catch((error: unknown) => this.#fail(error));
    this.output = this.#read(first);
  }

  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    for (const value of pieces(bytes)) await this.#inputs.push({ input: { case: "data", value } });
  }

  async resize(size: TerminalSize): Promise<void> {
    await this.#inputs.push({ input: { case: "resize", value: sizeMessage(size) } });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#inputs.end();
    this.#ended(HUNG_UP);
    await this.#outputs.return();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#read(first: Promise<IteratorResult<Output, void>>): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (let next = await first; next.done !== true; next = await this.#outputs.next()) {
        const { data, exitCode } = next.value;
        if (data.length > 0) yield data;
        if (exitCode !== undefined) return this.#ended(exitCode);
      }
      if (!this.#closed) throw endedEarly();
    } catch (error) {
      this.#fail(error);
      throw error;
    } finally {
      await this.close();
    }
  }

  /** Nobody takes input any more, and nobody shall wait for it to be taken. */
  #fail(error: unknown): void {
    this.#failed(error);
    this.#inputs.end();
  }
}

function endedEarly(): ConnectionError {
  return new ConnectionError("the server did not say how the terminal ended", { code: "CONNECTION_FAILED" });
}
