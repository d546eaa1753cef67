import { Queue } from "../isolation/waiting.ts";

/** The longest that a timer of Node can wait. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What a promise that may never settle is raced against. */
export interface Race<Late> {
  readonly signal?: AbortSignal | undefined;
  /** Together with `late`. */
  readonly waitMs?: number;
  /** What comes of it when the time is over: its value, or its error. */
  readonly late?: () => Late;
}

/** The promise, unless its signal aborts before (then its reason), or the time is over. Leaves nothing behind on the signal. */
export async function unless<Value, Late = never>(
  promise: Promise<Value>,
  { signal, waitMs = Number.POSITIVE_INFINITY, late }: Race<Late>,
): Promise<Value | Late> {
  const { promise: other, resolve, reject } = Promise.withResolvers<Late>();
  const onAbort = (): void => reject(signal?.reason);
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const onTime = (): void => {
    try {
      resolve(late!());
    } catch (error) {
      reject(error);
    }
  };
  const timer = Number.isFinite(waitMs)
    ? setTimeout(onTime, Math.min(LONGEST_TIMER_MS, Math.max(0, waitMs)))
    : undefined;
  try {
    return await Promise.race([promise, other]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Turns for each of many keys; those of one key do not wait for those of another. */
export class KeyedTurns {
  readonly #turns = new Map<string, { readonly queue: Queue; waiting: number }>();

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const entry = this.#turns.get(key) ?? { queue: new Queue(), waiting: 0 };
    this.#turns.set(key, entry);
    entry.waiting += 1;
    try {
      return await entry.queue.run(work);
    } finally {
      entry.waiting -= 1;
      if (entry.waiting === 0) this.#turns.delete(key);
    }
  }
}

/** Whether the work ends in time. It goes on otherwise. */
export async function endsWithin(longestMs: number, work: Promise<unknown>): Promise<boolean> {
  const ended = work.then(() => true);
  return await unless(ended, { waitMs: longestMs, late: () => false });
}

/** A stream that remembers what was wrong with it. */
export interface Watched<Item> {
  readonly items: AsyncGenerator<Item>;
  fault: { readonly error: unknown } | undefined;
}

export function watched<Item>(
  source: AsyncIterable<Item>,
  onFault: (error: unknown) => void = () => {},
): Watched<Item> {
  const stream: Watched<Item> = { items: items(), fault: undefined };
  return stream;

  async function* items(): AsyncGenerator<Item> {
    try {
      yield* source;
    } catch (error) {
      stream.fault = { error };
      onFault(error);
      throw error;
    }
  }
}

/**
 * Lets `work` read what a client sends. When the stream itself is at fault (a message out of order, one too large, the client
 * gone), that is the call's error, whatever the reader made of it; every other error is `told` as a caller may know it.
 */
export async function feeding<Item, Result>(
  items: AsyncIterable<Item>,
  work: (items: AsyncIterable<Item>) => Promise<Result>,
  told: (error: unknown) => unknown = (error) => error,
): Promise<Result> {
  const stream = watched(items);
  try {
    return await work(stream.items);
  } catch (error) {
    throw stream.fault === undefined ? told(error) : stream.fault.error;
  }
}
