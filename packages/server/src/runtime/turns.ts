import { unless } from "./race.ts";

/** Work that takes turns, in the order in which it was asked for. A failure is its own: the next one runs all the same. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** `after` is done when the caller has its result, and before the next one's turn; it does not throw. */
  take<T>(work: () => Promise<T>, after?: () => Promise<void>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.then(after, after).catch(() => {});
    return result;
  }

  /** Everything asked for so far is over. */
  async settled(): Promise<void> {
    await this.#last;
  }
}

/** Turns for each of many keys; those of one key do not wait for those of another. */
export class KeyedTurns {
  readonly #turns = new Map<string, { readonly turns: Turns; waiting: number }>();

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const entry = this.#turns.get(key) ?? { turns: new Turns(), waiting: 0 };
    this.#turns.set(key, entry);
    entry.waiting += 1;
    try {
      return await entry.turns.take(work);
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
