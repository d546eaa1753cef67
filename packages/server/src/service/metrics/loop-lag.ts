import { createHistogram } from "node:perf_hooks";

const TICK_MS = 20;
/** Calls that follow one another are one time of work: what held the last of them up is still seen. */
const QUIET_MS = 1_000;

/** How late this thread's timers are while there is work. Node's own measure wakes an idle thread for it, fifty times a second. */
export class LoopLag implements Disposable {
  readonly #now: () => number;
  /** In nanoseconds. */
  readonly #lags = createHistogram();
  #works = 0;
  #tickedAtMs = 0;
  #clock: NodeJS.Timeout | undefined;
  #quiet: NodeJS.Timeout | undefined;

  /** @param now in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  workBegins(): void {
    this.#works += 1;
    if (this.#clock !== undefined) return;
    this.#tickedAtMs = this.#now();
    this.#clock = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  workEnds(): void {
    this.#works -= 1;
    if (this.#works > 0) return;
    this.#quiet ??= setTimeout(() => this.#rest(), QUIET_MS).unref();
    this.#quiet.refresh();
  }

  /** In seconds, since this was asked last; 0 where there was no work. */
  take(): { readonly "0.5": number; readonly "0.99": number; readonly "1": number } {
    const { count, max } = this.#lags;
    const seconds = (nanoseconds: number): number => (count === 0 ? 0 : nanoseconds / 1e9);
    const [half, most] = [this.#lags.percentile(50), this.#lags.percentile(99)].map(seconds);
    this.#lags.reset();
    return { "0.5": half!, "0.99": most!, "1": seconds(max) };
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#quiet);
    clearInterval(this.#clock);
  }

  #tick(): void {
    const lateMs = this.#now() - this.#tickedAtMs - TICK_MS;
    this.#tickedAtMs += TICK_MS + lateMs;
    this.#lags.record(Math.max(1, Math.round(lateMs * 1e6)));
  }

  #rest(): void {
    if (this.#works > 0) return;
    clearInterval(this.#clock);
    this.#clock = undefined;
  }
}
