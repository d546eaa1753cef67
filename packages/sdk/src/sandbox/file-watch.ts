import type { CallOptions } from "../model/options.ts";
import type { FileChange } from "../model/records.ts";

/** Changes of files as they happen. What happens before the loop begins is not lost. */
export class FileWatch implements AsyncIterable<FileChange>, AsyncDisposable {
  /** Resolves when every change from then on is seen. */
  readonly ready: Promise<void>;
  readonly #stop = new AbortController();
  readonly #changes: Promise<AsyncGenerator<FileChange, void, undefined>>;

  constructor(
    open: (signal: AbortSignal) => Promise<AsyncGenerator<FileChange, void, undefined>>,
    { signal }: CallOptions,
  ) {
    this.#changes = open(signal === undefined ? this.#stop.signal : AbortSignal.any([signal, this.#stop.signal]));
    this.ready = this.#changes.then(() => {});
    // Whoever waits for neither hears of a failure in the loop.
    this.ready.catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FileChange, void, undefined> {
    try {
      yield* await this.#changes;
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    } finally {
      this.#stop.abort();
    }
  }

  /** Ends the watch, and the loop over it. */
  close(): void {
    this.#stop.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
