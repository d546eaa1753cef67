/** What to do when an opening fails half-way: the newest first, each whatever becomes of the others. */
export class Undo {
  readonly #steps: (() => Promise<unknown>)[] = [];

  add(step: () => Promise<unknown>): void {
    this.#steps.push(step);
  }

  /** Runs the work; when it fails, undoes what it had done so far. Its own error is what callers hear of. */
  static async onFailure<T>(work: (undo: Undo) => Promise<T>): Promise<T> {
    const undo = new Undo();
    try {
      return await work(undo);
    } catch (error) {
      for (const step of undo.#steps.reverse()) await step().catch(() => {});
      throw error;
    }
  }
}
