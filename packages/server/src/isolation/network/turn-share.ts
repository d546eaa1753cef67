/** A step is a name that is looked up, a connection that begins or a request that is checked: a fraction of a millisecond. */
export const STEPS_PER_TURN = 32;

/**
 * What one box may do in a turn of the thread that it shares with all others. What is beyond it waits for the next turn, in order: between two turns
 * everybody is heard.
 */
export class TurnShare {
  readonly #waiting: (() => void)[] = [];
  #left = STEPS_PER_TURN;

  /** Uses a step of this turn, if there is one. */
  take(): boolean {
    if (this.#left === STEPS_PER_TURN) setImmediate(() => this.#renew());
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  /** Now, or as soon as it is its turn. */
  run(step: () => void): void {
    if (this.#waiting.length === 0 && this.take()) step();
    else this.#waiting.push(step);
  }

  #renew(): void {
    this.#left = STEPS_PER_TURN;
    while (this.#waiting.length > 0 && this.take()) this.#waiting.shift()!();
  }
}
