/** Everything of a list that comes in pages. */
export async function everyPage<Item>(
  fetch: (pageToken: string) => Promise<{ readonly items: readonly Item[]; readonly nextPageToken: string }>,
): Promise<Item[]> {
  const all: Item[] = [];
  for (let token = ""; ; ) {
    const { items, nextPageToken } = await fetch(token);
    all.push(...items);
    if (nextPageToken === "") return all;
    token = nextPageToken;
  }
}

/** The most that a server gives at once. */
export const PAGE_SIZE = 1000;
