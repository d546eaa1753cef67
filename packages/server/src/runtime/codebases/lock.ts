/** Callers take turns, first come first served. */
export class Lock {
  #last: Promise<unknown> = Promise.resolve();

  /** `after` is done when the caller has its result, and before the next one's turn; it does not throw. */
  run<Result>(work: () => Promise<Result>, after?: () => Promise<void>): Promise<Result> {
    const turn = this.#last.then(work);
    this.#last = turn.then(after, after).catch(() => {});
    return turn;
  }
}

/** A lock for each key, for as long as somebody wants it. */
export class KeyedLocks {
  readonly #locks = new Map<string, { readonly lock: Lock; users: number }>();

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const entry = this.#locks.get(key) ?? { lock: new Lock(), users: 0 };
    this.#locks.set(key, entry);
    entry.users += 1;
    try {
      return await entry.lock.run(work);
    } finally {
      entry.users -= 1;
      if (entry.users === 0) this.#locks.delete(key);
    }
  }
}
