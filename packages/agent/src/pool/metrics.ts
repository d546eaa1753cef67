import type { PoolStep } from "./events.ts";

/** A pool at this moment, and what it did since it was made. */
export interface PoolMetrics {
  /** Instances there are: those below, and those that are being checked, reset or destroyed. Never above `max`. */
  readonly alive: number;
  readonly creating: number;
  readonly idle: number;
  readonly busy: number;
  /** Sessions that wait. */
  readonly waiting: number;
  readonly created: number;
  readonly destroyed: number;
  readonly acquired: number;
  readonly released: number;
  /** Callers who waited in vain. */
  readonly timeouts: number;
  readonly failures: Readonly<Record<PoolStep, number>>;
  /** How long the last 1,000 sessions that were served had waited. */
  readonly waitMs: { readonly mean: number; readonly p95: number; readonly max: number };
}

const SAMPLES = 1_000;

/** The counters of a pool. */
export class PoolTally {
  created = 0;
  destroyed = 0;
  acquired = 0;
  released = 0;
  timeouts = 0;
  readonly failures: Record<PoolStep, number> = { create: 0, reset: 0, check: 0, destroy: 0 };
  /** A ring. */
  readonly #waits: number[] = [];

  served(waitedMs: number): void {
    this.#waits[this.acquired % SAMPLES] = waitedMs;
    this.acquired += 1;
  }

  metrics(now: Pick<PoolMetrics, "alive" | "creating" | "idle" | "busy" | "waiting">): PoolMetrics {
    const { created, destroyed, acquired, released, timeouts } = this;
    const failures = { ...this.failures };
    return { ...now, created, destroyed, acquired, released, timeouts, failures, waitMs: summary(this.#waits) };
  }
}

function summary(waits: readonly number[]): PoolMetrics["waitMs"] {
  if (waits.length === 0) return { mean: 0, p95: 0, max: 0 };
  const sorted = waits.toSorted((a, b) => a - b);
  return {
    mean: sorted.reduce((sum, wait) => sum + wait, 0) / sorted.length,
    p95: sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0,
    max: sorted.at(-1) ?? 0,
  };
}
