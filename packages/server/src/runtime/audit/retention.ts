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
export class Retention implements AsyncDisposable {
  readonly #limits: RetentionOptions;
  readonly #store: EventMetadata;
  readonly #clock: () => number;
  readonly #onFailure: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #added = 0;
  #running: Promise<void> | undefined;

  constructor(options: {
    limits: RetentionOptions;
    store: EventMetadata;
    clock: () => number;
    onFailure: (error: unknown) => void;
  }) {
    this.#limits = options.limits;
    this.#store = options.store;
    this.#clock = options.clock;
    this.#onFailure = options.onFailure;
    this.#timer = setInterval(() => this.#trim(), INTERVAL_MS);
    this.#timer.unref();
    this.#trim();
  }

  added(events: number): void {
    this.#added += events;
    if (this.#added >= Math.max(LEAST_EXCESS, this.#limits.maxEvents * EXCESS_SHARE)) this.#trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  #trim(): void {
    if (this.#running !== undefined) return;
    const { maxAgeMs, maxEvents } = this.#limits;
    this.#added = 0;
    this.#running = this.#store
      .trimEvents({
        ...(isLimit(maxAgeMs) ? { beforeMs: this.#clock() - maxAgeMs } : {}),
        ...(isLimit(maxEvents) ? { keep: maxEvents } : {}),
      })
      .then(() => {}, this.#onFailure)
      .finally(() => {
        this.#running = undefined;
      });
  }
}

function isLimit(value: number): boolean {
  return value > 0 && Number.isFinite(value);
}
