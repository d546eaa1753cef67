/** As long as a timer waits; it never gets to do anything. */
const LONGEST_MS = 2 ** 31 - 1;

/** Keeps the process alive while something is waited for, and only then: nothing in the engine does. */
export class ProcessHold {
  readonly #timer = setInterval(() => {}, LONGEST_MS).unref();
  #waiting = 0;

  async during<T>(work: Promise<T>): Promise<T> {
    this.#waiting += 1;
    if (this.#waiting === 1) this.#timer.ref();
    try {
      return await work;
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#timer.unref();
    }
  }
}
