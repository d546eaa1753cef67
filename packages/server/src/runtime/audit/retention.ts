import type { EventMetadata } from "../store/store.ts";

/** How long events are kept. 0 or less, or Infinity: without that limit. */
export interface RetentionOptions {
  readonly maxAgeMs: number;
  readonly maxEvents: number;
}

const INTERVAL_MS = 60_000;
/** Between two rounds the log may outgrow its limit by this share of it, and by as many events at least. */
const EXCESS_SHARE = 0.1;
const LEAST_EXCESS = 1_000;

/** Removes old events: at once, every minute, and whenever many have been added. */
export function startRetention(options: {
  readonly limits: RetentionOptions;
  readonly store: EventMetadata;
  readonly clock: () => number;
  readonly onFailure: (error: unknown) => void;
}): AsyncDisposable & { added(events: number): void } {
  const { store, clock, onFailure } = options;
  const { maxAgeMs, maxEvents } = options.limits;
  let addedSince = 0;
  let running: Promise<void> | undefined;

  function trim(): void {
    if (running !== undefined) return;
    addedSince = 0;
    running = store
      .trimEvents({
        ...(isLimit(maxAgeMs) ? { beforeMs: clock() - maxAgeMs } : {}),
        ...(isLimit(maxEvents) ? { keep: maxEvents } : {}),
      })
      .then(() => {}, onFailure)
      .finally(() => {
        running = undefined;
      });
  }

  const timer = setInterval(trim, INTERVAL_MS);
  timer.unref();
  trim();
  return {
    added(events) {
      addedSince += events;
      if (addedSince >= Math.max(LEAST_EXCESS, maxEvents * EXCESS_SHARE)) trim();
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await running;
    },
  };
}

function isLimit(value: number): boolean {
  return value > 0 && Number.isFinite(value);
}
