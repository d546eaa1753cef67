import type { Clock } from "./options.ts";

interface Mortal {
  readonly expiresAtMs: number | undefined;
}

/** A timer cannot wait longer. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;
/** A clock that was set back must not make the reaper spin. */
const SHORTEST_WAIT_MS = 10;

/** Ends what has expired: when the next one is due, and every so often all the same. */
export class Reaper<T extends Mortal> implements Disposable {
  readonly #all: () => Iterable<T>;
  readonly #end: (expired: T) => void;
  readonly #clock: Clock;
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: {
    readonly all: () => Iterable<T>;
    /** Called again at the next round for one that is still there. */
    readonly end: (expired: T) => void;
    readonly clock: Clock;
    readonly intervalMs: number;
  }) {
    this.#all = options.all;
    this.#end = options.end;
    this.#clock = options.clock;
    this.#intervalMs = Math.max(options.intervalMs, SHORTEST_WAIT_MS);
  }

  /** Somebody new may be the next. */
  look(): void {
    if (this.#stopped) return;
    const nowMs = this.#clock();
    let nextMs = nowMs + this.#intervalMs;
    for (const one of this.#all()) {
      if (one.expiresAtMs === undefined) continue;
      if (one.expiresAtMs <= nowMs) this.#end(one);
      else nextMs = Math.min(nextMs, one.expiresAtMs);
    }
    clearTimeout(this.#timer);
    const waitMs = Math.min(Math.max(nextMs - nowMs, SHORTEST_WAIT_MS), LONGEST_WAIT_MS);
    this.#timer = setTimeout(() => this.look(), waitMs);
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }
}
