import type { Clock } from "./options.ts";

/** Measuring walks through every delta: an answer serves for a while. */
const FRESH_MS = 30_000;

/** How much all sandboxes have changed, and have in homes of their own, in bytes, as it was not long ago. */
export class DeltaSize {
  readonly #measure: () => Promise<number>;
  readonly #clock: Clock;
  #measured: { readonly atMs: number; readonly bytes: Promise<number> } | undefined;

  constructor(measure: () => Promise<number>, clock: Clock) {
    this.#measure = measure;
    this.#clock = clock;
  }

  async bytes(): Promise<number> {
    const nowMs = this.#clock();
    if (this.#measured === undefined || nowMs - this.#measured.atMs > FRESH_MS) {
      this.#measured = { atMs: nowMs, bytes: this.#measure() };
      this.#measured.bytes.catch(() => {
        this.#measured = undefined;
      });
    }
    return await this.#measured.bytes;
  }
}
