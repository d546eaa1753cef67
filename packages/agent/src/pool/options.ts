import { AgentError } from "../errors.ts";
import type { PoolEvent } from "./events.ts";

/** How instances are made and unmade. What these throw is told as an event; it never reaches an unconcerned session. */
export interface PoolOptions<T> {
  /** Makes an instance. It must end when the signal is aborted; what it gives after that is destroyed at once. */
  readonly create: (signal: AbortSignal) => Promise<T>;
  readonly destroy: (instance: T) => Promise<void>;
  /** Makes an instance equal to a new one. Absent: none is used by two sessions, each is destroyed after its first. */
  readonly reset?: ((instance: T, signal: AbortSignal) => Promise<void>) | undefined;
  /** Throws if an idle instance is of no use any more. Absent: idle ones are believed to be fine. */
  readonly check?: ((instance: T, signal: AbortSignal) => Promise<void>) | undefined;
  /** So many are kept, used or not; default 0. */
  readonly min?: number | undefined;
  /** There are never more, counting those that are being made or destroyed; default 10. */
  readonly max?: number | undefined;
  /** An instance beyond `min` that nobody wanted for so long is destroyed; default 5 min. */
  readonly idleMs?: number | undefined;
  /** Between two checks of an idle instance; default 30 s. */
  readonly checkIntervalMs?: number | undefined;
  /** How long `acquire` waits, unless it says otherwise; default 30 s. */
  readonly acquireTimeoutMs?: number | undefined;
  /** After that, the signal of `create` is aborted; default 60 s. */
  readonly createTimeoutMs?: number | undefined;
  /** For a reset, a check, a destruction. What takes longer has failed; default 30 s. */
  readonly stepTimeoutMs?: number | undefined;
  /**
   * After so many failures of `create` in a row, those are told who wait while there is no instance at all; default
   * 3.
   */
  readonly createAttempts?: number | undefined;
  /** Before `create` is called again after a failure; doubles with each one in a row up to 5 s; default 100 ms. */
  readonly retryMs?: number | undefined;
  readonly onEvent?: ((event: PoolEvent) => void) | undefined;
  readonly clock?: PoolClock | undefined;
}

const DEFAULTS = {
  min: 0,
  max: 10,
  idleMs: 5 * 60_000,
  checkIntervalMs: 30_000,
  acquireTimeoutMs: 30_000,
  createTimeoutMs: 60_000,
  stepTimeoutMs: 30_000,
  createAttempts: 3,
  retryMs: 100,
};

/** The options, complete. */
export type PoolSettings<T> = Pick<PoolOptions<T>, "create" | "destroy" | "reset" | "check" | "onEvent"> &
  Readonly<typeof DEFAULTS> & { readonly clock: PoolClock };

/** Node's timers take no more. */
const LONGEST_MS = 2 ** 31 - 1;

export function poolSettings<T>(options: PoolOptions<T>): PoolSettings<T> {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settings = { clock: systemPoolClock, ...DEFAULTS, ...given } as PoolSettings<T>;
  const { min, max, createAttempts } = settings;
  if (!Number.isSafeInteger(max) || max < 1) throw unusable("max", max, "a whole number from 1 on");
  if (!Number.isSafeInteger(min) || min < 0 || min > max) throw unusable("min", min, `a whole number from 0 to ${max}`);
  if (!Number.isSafeInteger(createAttempts) || createAttempts < 1) {
    throw unusable("createAttempts", createAttempts, "a whole number from 1 on");
  }
  for (const name of ["idleMs", "checkIntervalMs", "acquireTimeoutMs", "createTimeoutMs", "stepTimeoutMs", "retryMs"]) {
    checkDuration(name, settings[name as keyof typeof DEFAULTS]);
  }
  return settings;
}

export function checkDuration(name: string, durationMs: number): void {
  if (durationMs >= 0 && durationMs <= LONGEST_MS) return;
  throw unusable(name, durationMs, `milliseconds from 0 to ${LONGEST_MS}`);
}

function unusable(name: string, value: unknown, wanted: string): AgentError {
  return new AgentError(`${name} of a pool is ${String(value)}; it must be ${wanted}`);
}

/** Time as a pool sees it. */
export interface PoolClock {
  /** Milliseconds since whenever; never goes back. */
  now(): number;
  /** Calls once, after so many milliseconds, unless it is cancelled. */
  after(delayMs: number, run: () => void, options?: TimerOptions): Timer;
}

export interface TimerOptions {
  /** True: nobody waits for it, so that it alone does not keep the process running. */
  readonly background?: boolean | undefined;
}

export interface Timer {
  cancel(): void;
}

const systemPoolClock: PoolClock = {
  now: () => performance.now(),
  after: (delayMs, run, { background = false } = {}) => {
    const timer = setTimeout(run, delayMs);
    if (background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
