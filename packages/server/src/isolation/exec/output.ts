import type { Readable } from "node:stream";

/**
 * Reads a stream to its end and keeps the first `limitBytes` of it. What is beyond is read and dropped: the command goes
 * on as if somebody read it, and its memory here stays bounded.
 */
export class CollectedOutput {
  /** Resolves when all has arrived. */
  readonly ended: Promise<void>;
  readonly #chunks: Buffer[] = [];
  readonly #limit: number;
  #kept = 0;
  #truncated = false;

  constructor(stream: Readable, limitBytes: number) {
    this.#limit = limitBytes;
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
    this.ended = endOf(stream);
  }

  get truncated(): boolean {
    return this.#truncated;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks, this.#kept);
  }

  #take(chunk: Buffer): void {
    const room = this.#limit - this.#kept;
    if (chunk.length > room) this.#truncated = true;
    if (room <= 0) return;
    // A copy of a short piece, so that ten bytes do not keep a read buffer of 64 KiB alive.
    const piece = chunk.subarray(0, room);
    this.#chunks.push(piece.length < 4096 ? Buffer.from(piece) : piece);
    this.#kept += piece.length;
  }
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
