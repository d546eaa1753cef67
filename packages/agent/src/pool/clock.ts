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

export const systemPoolClock: PoolClock = {
  now: () => performance.now(),
  after: (delayMs, run, { background = false } = {}) => {
    const timer = setTimeout(run, delayMs);
    if (background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
