/** Whether the server takes work, and the word that it stops. */
export class Serving {
  readonly #ready: () => boolean;
  readonly #stopping = new AbortController();

  constructor(ready: () => boolean) {
    this.#ready = ready;
  }

  get isReady(): boolean {
    return !this.isDraining && this.#ready();
  }

  get isDraining(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Aborts when the server begins to stop. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  drain(): void {
    this.#stopping.abort();
  }
}
