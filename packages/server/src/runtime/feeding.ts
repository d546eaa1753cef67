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
