import { InvalidConfigurationError } from "../../errors.ts";

const PIECE_BYTES = 64 * 1024;

interface Sending {
  readonly data: Uint8Array;
  readonly done: () => void;
  readonly failed: (reason: unknown) => void;
}

/** The input of a running command: what is sent is read from here by the call that carries it. */
export class StdinFeed implements AsyncIterable<Uint8Array> {
  readonly #waiting: Sending[] = [];
  #state: "open" | "ended" | "over" = "open";
  #reason: () => Error = () => new Error("the command is over");
  #wake = (): void => {};

  /** Resolves when the call has taken it and asks for more, so that whoever waits is as fast as the command reads. */
  async send(data: Uint8Array): Promise<void> {
    if (this.#state === "over") throw this.#reason();
    if (this.#state === "ended") throw afterEnd();
    const pieces: Promise<void>[] = [];
    for (let at = 0; at < data.byteLength; at += PIECE_BYTES) {
      pieces.push(this.#sendPiece(data.subarray(at, at + PIECE_BYTES)));
    }
    await Promise.all(pieces);
  }

  /** The command reads the end of its input after what was sent. */
  end(): void {
    if (this.#state === "open") this.#state = "ended";
    this.#wake();
  }

  /** Nobody reads any more. */
  close(reason: () => Error): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#reason = reason;
    for (const { failed } of this.#waiting.splice(0)) failed(reason());
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    while (this.#state !== "over") {
      const next = this.#waiting[0];
      if (next !== undefined) {
        yield next.data;
        if (this.#waiting[0] === next) this.#waiting.shift();
        next.done();
      } else if (this.#state === "ended") return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  #sendPiece(data: Uint8Array): Promise<void> {
    return new Promise((done, failed) => {
      this.#waiting.push({ data, done, failed });
      this.#wake();
    });
  }
}

function afterEnd(): InvalidConfigurationError {
  return new InvalidConfigurationError("nothing can be sent after the end of the input", { code: "INVALID_ARGUMENT" });
}
