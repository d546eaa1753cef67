/** Of what was asked for under a name that its asker chose. */
const MOST = 1000;
const KEPT_MS = 10 * 60 * 1000;

/** Who asks for the same thing again, because no answer came, gets what was made the first time. */
export class Once<T> {
  readonly #made = new Map<string, { readonly result: Promise<T>; readonly atMs: number }>();

  /** What failed may be tried again. */
  async run(name: string, make: () => Promise<T>): Promise<T> {
    const known = this.#made.get(name);
    if (known !== undefined && performance.now() - known.atMs < KEPT_MS) return await known.result;
    const result = make();
    this.#made.delete(name);
    this.#made.set(name, { result, atMs: performance.now() });
    const [oldest] = this.#made.keys();
    if (this.#made.size > MOST && oldest !== undefined) this.#made.delete(oldest);
    try {
      return await result;
    } catch (error) {
      if (this.#made.get(name)?.result === result) this.#made.delete(name);
      throw error;
    }
  }
}
