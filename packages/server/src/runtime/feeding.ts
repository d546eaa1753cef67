/**
 * Lets `work` read what a client sends. When the stream itself is at fault (a message out of order, one too large, the client
 * gone), that is the call's error, whatever the reader made of it; every other error is `told` as a caller may know it.
 */
export async function feeding<Item, Result>(
  items: AsyncIterable<Item>,
  work: (items: AsyncIterable<Item>) => Promise<Result>,
  told: (error: unknown) => unknown = (error) => error,
): Promise<Result> {
  let fault: { readonly error: unknown } | undefined;
  async function* watched(): AsyncGenerator<Item> {
    try {
      yield* items;
    } catch (error) {
      fault = { error };
      throw error;
    }
  }
  try {
    return await work(watched());
  } catch (error) {
    throw fault === undefined ? told(error) : fault.error;
  }
}
