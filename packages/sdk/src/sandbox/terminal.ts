import type { TerminalConnection, TerminalSize } from "../model/requests.ts";

/** A terminal in a sandbox, until its program ends or it is killed. */
export class Terminal implements AsyncDisposable {
  /** What the program shows. What is not read holds the program up. */
  readonly output: ReadableStream<Uint8Array>;
  readonly exit: Promise<{ readonly exitCode: number }>;
  readonly #connection: TerminalConnection;

  /** `Sandbox.terminal` makes one. */
  constructor(connection: TerminalConnection) {
    this.#connection = connection;
    this.exit = connection.exit;
    // Whoever does not ask for the end is not to die of how it ended.
    this.exit.catch(() => {});
    this.output = readableOf(connection.output);
  }

  /** As if it was typed; "\r" is the return key. */
  async write(data: string | Uint8Array): Promise<void> {
    await this.#connection.write(data);
  }

  async resize(size: TerminalSize): Promise<void> {
    await this.#connection.resize(size);
  }

  /** Ends what runs in it. */
  async kill(): Promise<void> {
    await this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

/** The items of an iterable as a stream: one is fetched when one is asked for, and cancelling leaves the iterable. */
function readableOf<T>(items: AsyncIterable<T>): ReadableStream<T> {
  const iterator = items[Symbol.asyncIterator]();
  return new ReadableStream<T>(
    {
      async pull(controller) {
        const next = await iterator.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
