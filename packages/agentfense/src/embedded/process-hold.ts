import type { Transport } from "@connectrpc/connect";

/** As long as a timer waits; it never gets to do anything. */
const LONGEST_MS = 2 ** 31 - 1;

/** Keeps the process alive while something is waited for, and only then: nothing in the engine does. */
export class ProcessHold {
  readonly #timer = setInterval(() => {}, LONGEST_MS).unref();
  #waiting = 0;

  async during<T>(work: Promise<T>): Promise<T> {
    this.#waiting += 1;
    if (this.#waiting === 1) this.#timer.ref();
    try {
      return await work;
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#timer.unref();
    }
  }
}

/**
 * A transport that is there with its first call, and keeps the process alive while an answer is waited for. A stream that
 * nobody reads from at the moment does not: whoever forgot it must not be kept.
 */
export function heldTransport(open: () => Promise<Transport>, hold: ProcessHold): Transport {
  return {
    async unary(...call) {
      return await hold.during(open().then((transport) => transport.unary(...call)));
    },
    async stream(...call) {
      const response = await hold.during(open().then((transport) => transport.stream(...call)));
      return { ...response, message: heldMessages(response.message, hold) };
    },
  };
}

function heldMessages<T>(messages: AsyncIterable<T>, hold: ProcessHold): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      return {
        next: () => hold.during(iterator.next()),
        return: (value) => hold.during(iterator.return?.(value) ?? Promise.resolve({ done: true, value: undefined })),
        throw: (error) => hold.during(iterator.throw?.(error) ?? Promise.reject(error)),
      };
    },
  };
}
