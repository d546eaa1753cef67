/** Something that can be listed: item by item while pages are fetched as needed, or all at once. Each iteration starts anew. */
export class Listing<T> implements AsyncIterable<T> {
  readonly #iterate: () => AsyncIterator<T>;

  constructor(iterate: () => AsyncIterator<T>) {
    this.#iterate = iterate;
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return this.#iterate();
  }

  async toArray(): Promise<T[]> {
    const all: T[] = [];
    for await (const item of this) all.push(item);
    return all;
  }
}

/** One page of something, and the token of the next; "" after the last. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextPageToken: string;
}

/** A listing whose pages come from `fetch`; the first one has the token "". */
export function paged<T>(fetch: (pageToken: string) => Promise<Page<T>>): Listing<T> {
  return new Listing(async function* () {
    for (let token = ""; ; ) {
      const { items, nextPageToken } = await fetch(token);
      yield* items;
      if (nextPageToken === "") return;
      token = nextPageToken;
    }
  });
}
