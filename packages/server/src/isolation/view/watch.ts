import type { ViewChange } from "./api.ts";

/** Changes that wait for a slow reader. */
export const MOST_QUEUED = 4096;

/** More happened than can be told: what is watched is to be looked at anew. */
const LOOK_AGAIN: ViewChange = { kind: "change", path: "" };
/** What is watched is not there any more. */
const GONE: ViewChange = { kind: "rename", path: "" };

/** One watch: what it is on, and what happened there that its reader has not seen yet. */
export class Watch {
  /** The marked directories, relative to the top. */
  readonly places = new Map<number, string>();
  /** Directories, relative to the top, that must be marked anew with all below them. */
  readonly stale = new Set<string>();
  /** The directory at the top. */
  top: readonly string[] = [];
  /** The one entry of it that is watched, if it is not all of them. */
  only: string | undefined;
  readonly #recursive: boolean;
  readonly #onEnd: () => void;
  #queue: ViewChange[] = [];
  #wake: () => void = () => {};
  #ended = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: { readonly recursive: boolean; readonly onEnd: () => void }) {
    this.#recursive = options.recursive;
    this.#onEnd = options.onEnd;
  }

  /** All below the top; there is nothing below a file. */
  get recursive(): boolean {
    return this.#recursive && this.only === undefined;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get topMark(): number | undefined {
    for (const [mark, path] of this.places) if (path === "") return mark;
    return undefined;
  }

  tell(change: ViewChange): void {
    if (this.#ended) return;
    const last = this.#queue.at(-1);
    if (last?.kind === change.kind && last.path === change.path) return;
    if (this.#queue.length >= MOST_QUEUED) this.#queue = [LOOK_AGAIN];
    else this.#queue.push(change);
    this.#wake();
  }

  lookAgain(): void {
    this.tell(LOOK_AGAIN);
  }

  /** What is watched was deleted, moved away or hidden. */
  gone(): void {
    this.tell(GONE);
    this.end();
  }

  fail(error: unknown): void {
    if (this.#ended) return;
    this.#failure = { error };
    this.end();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd();
    this.#wake();
  }

  /** Ends with the watch, after what is left to tell. Leaving the loop ends the watch. */
  async *changes(): AsyncGenerator<ViewChange> {
    try {
      while (true) {
        for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) yield next;
        if (this.#failure !== undefined) throw this.#failure.error;
        if (this.#ended) return;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.end();
    }
  }
}
