/** A timer cannot wait for longer; beyond is for ever. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The end of somebody's patience, over all attempts of a call. */
export class Deadline {
  static readonly NONE = new Deadline(undefined);
  readonly totalMs: number | undefined;
  readonly #endsAtMs: number;

  private constructor(totalMs: number | undefined) {
    this.totalMs = totalMs;
    this.#endsAtMs = performance.now() + (totalMs ?? Number.POSITIVE_INFINITY);
  }

  /** 0, undefined and what is beyond any timer are no deadline. */
  static after(totalMs: number | undefined): Deadline {
    if (totalMs === undefined || !(totalMs > 0) || totalMs > LONGEST_TIMER_MS) return Deadline.NONE;
    return new Deadline(totalMs);
  }

  /** Calls when it is here; nothing to wait for without one. */
  timer(call: () => void): ReturnType<typeof setTimeout> | undefined {
    if (this.totalMs === undefined) return undefined;
    return setTimeout(call, Math.max(1, Math.ceil(this.#endsAtMs - performance.now())));
  }

  /** There is time for waiting so long, and for something after it. */
  allows(pauseMs: number): boolean {
    return performance.now() + pauseMs < this.#endsAtMs;
  }
}
