/** Messages for a call that runs, given one by one. Whoever gives one waits until it is taken, so that nothing piles up. */
export class InputQueue<T> implements AsyncIterable<T> {
  readonly #waiting: { readonly item: T; readonly taken: () => void }[] = [];
  #wake: (() => void) | undefined;
  #ended = false;

  /** Resolves when the item is on its way; at once when the call is over. */
  async push(item: T): Promise<void> {
    if (this.#ended) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push({ item, taken: resolve });
      this.#wake?.();
    });
  }

  /** Nothing is taken any more. */
  end(): void {
    this.#ended = true;
    for (const { taken } of this.#waiting.splice(0)) taken();
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    while (!this.#ended) {
      const next = this.#waiting.shift();
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      } else {
        next.taken();
        yield next.item;
      }
    }
  }
}
