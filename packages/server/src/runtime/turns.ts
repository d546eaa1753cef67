import { Queue } from "../isolation/queue.ts";
import { unless } from "./race.ts";

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
