/** Lets one at a time: models call tools side by side, and two edits of one file must not lose one of them. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  async take<Result>(action: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(action);
    this.#last = turn.catch(() => undefined);
    return await turn;
  }
}
