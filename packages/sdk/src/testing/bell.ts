/** Wakes whoever waits for something to happen. */
export class Bell {
  readonly #waiting = new Set<() => void>();

  ring(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Resolves with the next ring, and when the signal aborts. */
  async heard(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    let wake = (): void => {};
    const rung = new Promise<void>((resolve) => {
      wake = resolve;
    });
    this.#waiting.add(wake);
    signal?.addEventListener("abort", wake, { once: true });
    await rung;
    this.#waiting.delete(wake);
    signal?.removeEventListener("abort", wake);
  }
}
