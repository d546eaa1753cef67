/** One thing after the other, in the order in which it was asked for. A failure is its own: the next one runs all the same. */
export class Queue {
  #last: Promise<unknown> = Promise.resolve();

  /** `after` is done when the caller has its result, and before the next one's turn; it does not throw. */
  run<T>(work: () => T | Promise<T>, after?: () => Promise<void>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.then(after, after).catch(() => {});
    return result;
  }

  /** Everything asked for so far is over. */
  async settled(): Promise<void> {
    await this.#last;
  }
}

/** Wakes all who wait. */
export class Bell {
  #waiting: PromiseWithResolvers<void> | undefined;

  /** For the next ring, or so long. */
  async wait(atMostMs?: number): Promise<void> {
    this.#waiting ??= Promise.withResolvers<void>();
    const { promise } = this.#waiting;
    const timer = atMostMs === undefined ? undefined : setTimeout(() => this.ring(), atMostMs).unref();
    await promise;
    clearTimeout(timer);
  }

  ring(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}

/** Waits for the promise, whatever becomes of it, and no longer than this: whether that was long enough. */
export async function settledWithin(milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(late.resolve, milliseconds, false);
  const settled = () => true;
  return await Promise.race([promise.then(settled, settled), late.promise]).finally(() => clearTimeout(timer));
}
