import { Queue } from "../waiting.ts";
import { IsolationError } from "./isolation-error.ts";

/** Who is in the kernel, waiting for a file, freezes when it comes back. */
export const FREEZING_PATIENCE_MS = 5_000;

export function tooBusyToFreeze(cause?: unknown): IsolationError {
  return new IsolationError("RESOURCES_EXHAUSTED", "a process of the sandbox cannot be held still yet", {
    hint: "a file operation of it takes long: try again",
    cause,
  });
}

/** Holds all processes of a box still, and lets them go. Neither takes for ever, and both may be asked for twice. */
export interface Freezer {
  freeze(): Promise<void>;
  thaw(): Promise<void>;
}

/**
 * Whether a box is paused. What needs it to run goes through `awake`: a command that is being started, or one that has to be
 * ended where nobody dies while frozen. A pause waits for that; in a paused box it lets the box run for as long as it takes.
 */
export class PauseSwitch {
  readonly #freezer: Freezer;
  #isPaused = false;
  #isFrozen = false;
  #needs = 0;
  #unneeded = Promise.withResolvers<void>();
  readonly #changes = new Queue();

  constructor(freezer: Freezer) {
    this.#freezer = freezer;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Resolves when nothing runs. When that cannot be had everything runs on. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    try {
      await this.#settle();
      while (this.#isPaused && !this.#isFrozen) {
        await this.#unneeded.promise;
        await this.#settle();
      }
    } catch (error) {
      this.#isPaused = false;
      await this.#settle().catch(() => {}); // what failed first is told
      throw error;
    }
  }

  /** What cannot be let go of is still paused. */
  async resume(): Promise<void> {
    this.#isPaused = false;
    await this.#settle().catch((error: unknown) => {
      this.#isPaused = true;
      throw error;
    });
  }

  async awake<T>(work: () => Promise<T>): Promise<T> {
    this.#needs += 1;
    try {
      if (this.#isPaused || this.#isFrozen) await this.#settle();
      return await work();
    } finally {
      this.#needs -= 1;
      if (this.#needs === 0 && this.#isPaused) {
        this.#unneeded.resolve();
        this.#unneeded = Promise.withResolvers();
        this.#settle().catch(() => {}); // what does not freeze at once does so when it comes back from the kernel
      }
    }
  }

  #settle(): Promise<void> {
    return this.#changes.run(async () => {
      const shouldFreeze = this.#isPaused && this.#needs === 0;
      if (shouldFreeze === this.#isFrozen) return;
      this.#isFrozen = true; // also when either fails: it may be so for some
      await (shouldFreeze ? this.#freezer.freeze() : this.#freezer.thaw());
      this.#isFrozen = shouldFreeze;
    });
  }
}
