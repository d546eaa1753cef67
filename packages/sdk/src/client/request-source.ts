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
