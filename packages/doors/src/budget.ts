/** What all callers together may keep in memory, of some kind. */
export class Budget {
  readonly #limit: number;
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isSpent(): boolean {
    return this.#used > this.#limit;
  }

  /** May be less than nothing: something was given up. */
  add(amount: number): void {
    this.#used += amount;
  }
}
