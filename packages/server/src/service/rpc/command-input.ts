import type { ExecInput, ExecRequest } from "@agentfense/protocol/sandbox";
import { invalid, required } from "./messages/fields.ts";
import { readFirst, unread } from "./streams.ts";

/** The request of a command whose input follows. */
export async function readStart(inputs: AsyncIterator<ExecInput>): Promise<ExecRequest> {
  const { opening: start } = await readFirst(inputs, "start", ({ input }) =>
    input.case === "start" ? input.value : undefined,
  );
  required(start.sandboxId, "sandbox_id", "in start");
  if (start.stdin !== "" || start.stdinBytes.length > 0) {
    throw invalid("start takes neither stdin nor stdin_bytes: send the input in messages of its own");
  }
  return start;
}

/**
 * What a client types into a command, message by message as the command reads it. `end` and the end of the client's stream
 * are the end of the input; what follows an `end` is not read.
 */
export class CommandInput {
  readonly #inputs: AsyncIterable<ExecInput>;
  readonly #broken = new AbortController();
  /** Aborts when the stream goes wrong: the command is not to take that for the end of its input. */
  readonly signal: AbortSignal = this.#broken.signal;
  /** What the client did wrong, which is then the call's error. */
  fault: { readonly error: unknown } | undefined;

  constructor(inputs: AsyncIterator<ExecInput>) {
    this.#inputs = unread(inputs);
  }

  async *data(): AsyncGenerator<Uint8Array> {
    // What the reader throws in here, because the command takes no more, is no fault of the client's.
    for (let data = await this.#next(); data !== undefined; data = await this.#next()) yield data;
  }

  /** Undefined at the end of the input. */
  async #next(): Promise<Uint8Array | undefined> {
    try {
      for await (const { input } of this.#inputs) {
        if (input.case === "start") throw invalid("start already received");
        if (input.case === "end" && input.value) return undefined;
        if (input.case === "stdin" && input.value.length > 0) return input.value;
      }
      return undefined;
    } catch (error) {
      this.fault = { error };
      this.#broken.abort(error);
      throw error;
    }
  }
}
