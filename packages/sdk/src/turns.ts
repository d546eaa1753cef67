/** Lets one at a time, in the order in which it was asked for. A failure is its own: the next one runs all the same. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<Result>(action: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(action);
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** Everything asked for so far is over. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
