/** Wakes all who wait. */
export class Bell {
  #waiting: PromiseWithResolvers<void> | undefined;

  /** For the next ring, or so long. */
  async wait(atMostMs?: number): Promise<void> {
    this.#waiting ??= Promise.withResolvers<void>();
    const { promise } = this.#waiting;
    const timer = atMostMs === undefined ? undefined : setTimeout(() => this.ring(), atMostMs).unref();
    await promise;
    clearTimeout(timer);
  }

  ring(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
