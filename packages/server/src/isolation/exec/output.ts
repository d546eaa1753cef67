import type { Readable } from "node:stream";

/**
 * A command has ended but its outputs are open: a process it left behind in the box holds them (a container's processes
 * outlive an exec). When nothing came for this long, nothing more belongs to the command.
 */
export const OUTPUT_IDLE_MS = 300;
/** A survivor that prints for ever does not hold up the result for longer. */
const OUTPUT_MAX_MS = 3_000;

/**
 * Reads a stream to its end and keeps the first `limitBytes` of it. What is beyond is read and dropped: the command goes
 * on as if somebody read it, and its memory here stays bounded.
 */
export class CollectedOutput {
  readonly #ended: Promise<"ended">;
  readonly #chunks: Buffer[] = [];
  readonly #limit: number;
  #kept = 0;
  #truncated = false;
  #arrivedAtMs = 0;

  constructor(stream: Readable, limitBytes: number) {
    this.#limit = limitBytes;
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#ended = endOf(stream).then(() => "ended");
  }

  get truncated(): boolean {
    return this.#truncated;
  }

  /** After the command's exit: resolves when all it wrote has arrived. */
  async settled(): Promise<void> {
    const exitedAtMs = performance.now();
    for (;;) {
      const idleSinceMs = Math.max(exitedAtMs, this.#arrivedAtMs);
      const untilMs = Math.min(idleSinceMs + OUTPUT_IDLE_MS, exitedAtMs + OUTPUT_MAX_MS);
      const waitMs = untilMs - performance.now();
      if (waitMs <= 0 || (await firstOf(this.#ended, waitMs)) === "ended") return;
    }
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks, this.#kept);
  }

  #take(chunk: Buffer): void {
    this.#arrivedAtMs = performance.now();
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

/** What the promise resolves to, or "late". */
export async function firstOf<T>(promise: Promise<T>, ms: number): Promise<T | "late"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(resolve, ms, "late");
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
