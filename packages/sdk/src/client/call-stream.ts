interface MapOptions<U> {
  /** Nothing comes after such an item. */
  readonly isLast?: (item: U) => boolean;
  /** Makes the error for an end that is not the last item. */
  readonly early?: () => Error;
}

/**
 * What comes of a call, item by item. The call begins with the first read, and leaving the stream ends it at once: unlike a
 * generator's, its `return` does not wait for an item that may never come.
 */
export class CallStream<T> implements AsyncGenerator<T, void, undefined> {
  readonly #items: AsyncGenerator<T, void, undefined>;
  readonly #left: AbortController;

  /** Aborting `left` ends the call, and lets the items end. */
  constructor(items: AsyncGenerator<T, void, undefined>, left: AbortController) {
    this.#items = items;
    this.#left = left;
  }

  /** The stream of a call that need not be made. */
  static empty<T>(): CallStream<T> {
    return new CallStream<T>(nothing(), new AbortController());
  }

  /** The same stream with each item converted. */
  map<U>(convert: (item: T) => U, options: MapOptions<U> = {}): CallStream<U> {
    return new CallStream(converted(this, convert, options, this.#left.signal), this.#left);
  }

  /** The same stream with items that belong together converted as one: those that go on, and the one behind them. */
  gather<U>(goesOn: (item: T) => boolean, convert: (items: readonly [T, ...T[]]) => U): CallStream<U> {
    return new CallStream(gathered(this, goesOn, convert), this.#left);
  }

  next(): Promise<IteratorResult<T, void>> {
    return this.#items.next();
  }

  async return(): Promise<IteratorResult<T, void>> {
    this.#left.abort();
    return await this.#items.return();
  }

  async throw(error: unknown): Promise<IteratorResult<T, void>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}

async function* gathered<T, U>(
  items: CallStream<T>,
  goesOn: (item: T) => boolean,
  convert: (items: readonly [T, ...T[]]) => U,
): AsyncGenerator<U, void, undefined> {
  let together: T[] = [];
  for await (const item of items) {
    together.push(item);
    if (goesOn(item)) continue;
    const whole = together as [T, ...T[]];
    together = [];
    yield convert(whole);
  }
}

async function* converted<T, U>(
  items: CallStream<T>,
  convert: (item: T) => U,
  { isLast, early }: MapOptions<U>,
  left: AbortSignal,
): AsyncGenerator<U, void, undefined> {
  for await (const item of items) {
    const result = convert(item);
    yield result;
    if (isLast?.(result) === true) return;
  }
  if (early !== undefined && !left.aborted) throw early();
}

async function* nothing(): AsyncGenerator<never, void, undefined> {}

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

/** The messages of a streamed request on their way into a transport, which forgets to say why they ended, and to close them. */
export class RequestSource<T> implements AsyncIterable<T>, Disposable {
  readonly #iterator: AsyncIterator<T>;
  /** What making the messages failed with: the caller's own error, not one of the call. */
  failure: RequestFailure | undefined;

  constructor(messages: AsyncIterable<T>) {
    this.#iterator = messages[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return {
      next: () => this.#next(),
      // How a transport says that nobody reads any more.
      throw: async (error: unknown) => {
        this[Symbol.dispose]();
        throw error;
      },
    };
  }

  /** Not waited for: it may be in the middle of waiting for a message that never comes. */
  [Symbol.dispose](): void {
    this.#iterator.return?.().catch(() => {
      // The call is over, and has said how.
    });
  }

  async #next(): Promise<IteratorResult<T>> {
    try {
      return await this.#iterator.next();
    } catch (error) {
      this.failure = new RequestFailure(error);
      throw error;
    }
  }
}

/** Carries an error of the caller's own past everything that handles errors of calls. */
export class RequestFailure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}
