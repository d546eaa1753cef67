/** Wakes everybody who waits for something to have changed; each then looks for itself whether it was what he waited for. */
export class Bell {
  #sleepers: (() => void)[] = [];

  /** Look first: nobody else runs between a look and the beginning of this wait. */
  wait(): Promise<void> {
    return new Promise((resolve) => this.#sleepers.push(resolve));
  }

  ring(): void {
    const sleepers = this.#sleepers;
    this.#sleepers = [];
    for (const wake of sleepers) wake();
  }
}
