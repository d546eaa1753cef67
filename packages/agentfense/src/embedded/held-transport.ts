import type { Transport } from "@connectrpc/connect";
import type { ProcessHold } from "./process-hold.ts";

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
