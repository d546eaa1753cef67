import type { Readable } from "node:stream";

const FIRST_BYTES = 4 * 1024;

/** Keeps output up to a limit and drops the rest. Many small pieces cost no more than a few large ones. */
export class OutputBuffer {
  readonly #limit: number;
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;
  #truncated = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get truncated(): boolean {
    return this.#truncated;
  }

  write(data: Buffer): true {
    const kept = Math.min(data.length, this.#limit - this.#length);
    if (kept < data.length) this.#truncated = true;
    if (kept === 0) return true;
    this.#reserve(this.#length + kept);
    data.copy(this.#bytes, this.#length, 0, kept);
    this.#length += kept;
    return true;
  }

  lost(): void {
    this.#truncated = true;
  }

  /** What is there, and starts anew. */
  take(): { readonly data: Buffer; readonly truncated: boolean } {
    const taken = { data: this.#bytes.subarray(0, this.#length), truncated: this.#truncated };
    this.#bytes = Buffer.alloc(0);
    this.#length = 0;
    this.#truncated = false;
    return taken;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const size = Math.min(this.#limit, Math.max(FIRST_BYTES, length, 2 * this.#bytes.length));
    const larger = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/**
 * Reads a stream to its end. What is beyond the limit is read and dropped: the command goes on as if somebody read it, and its
 * memory here stays bounded.
 */
export function collect(stream: Readable, limitBytes: number): { kept: OutputBuffer; ended: Promise<void> } {
  const kept = new OutputBuffer(limitBytes);
  stream.on("data", (data: Buffer) => kept.write(data));
  return { kept, ended: endOf(stream) };
}

/** Settles when nothing more comes, for whatever reason. */
export function endOf(stream: Readable): Promise<void> {
  if (stream.closed || stream.readableEnded) return Promise.resolve();
  return new Promise((resolve) => {
    stream.once("end", resolve);
    stream.once("close", resolve);
    stream.once("error", () => resolve());
  });
}
