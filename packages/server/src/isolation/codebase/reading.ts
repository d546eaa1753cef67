import { read } from "node:fs";
import { promisify } from "node:util";
import { syscalls } from "@agentfense/fuse";

const readAsync = promisify(read);

const CHUNK = 256 * 1024;

/**
 * The first `size` bytes of an open file, once, from the start. It is closed when it was read, when the reader stops, and when the
 * signal aborts; by whoever never reads it with `close`.
 */
export class OpenContent implements AsyncIterable<Uint8Array> {
  #fd: number;
  #reading = false;
  #left: number;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => {
    if (!this.#reading) this.close();
  };

  constructor(fd: number, size: number, signal?: AbortSignal) {
    this.#fd = fd;
    this.#left = size;
    this.#signal = signal;
    if (signal?.aborted) this.close();
    signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      while (this.#left > 0) {
        this.#signal?.throwIfAborted();
        if (this.#fd < 0) return;
        const buffer = Buffer.allocUnsafe(Math.min(this.#left, CHUNK));
        this.#reading = true;
        const { bytesRead } = await readAsync(this.#fd, buffer, 0, buffer.length, null);
        this.#reading = false;
        if (bytesRead === 0) throw new Error("a file of a codebase is shorter than its size");
        this.#left -= bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      this.#reading = false;
      this.close();
    }
  }

  close(): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    if (this.#fd >= 0) syscalls.close(this.#fd);
    this.#fd = -1;
  }
}
