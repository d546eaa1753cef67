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
