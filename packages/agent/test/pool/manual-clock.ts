import type { PoolClock, Timer } from "../../src/pool/options.ts";

/** Time that passes when it is told to. */
export class ManualClock implements PoolClock {
  #now = 0;
  readonly #timers = new Set<{ readonly at: number; readonly run: () => void }>();

  now(): number {
    return this.#now;
  }

  get timers(): number {
    return this.#timers.size;
  }

  after(delayMs: number, run: () => void): Timer {
    const timer = { at: this.#now + delayMs, run };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Rings what is due on the way in order, and lets each have its consequences. */
  async advance(byMs: number): Promise<void> {
    const until = this.#now + byMs;
    for (;;) {
      await settled();
      const next = [...this.#timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = until;
    await settled();
  }
}

/** Whatever needs no more than promises has happened. */
export async function settled(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
