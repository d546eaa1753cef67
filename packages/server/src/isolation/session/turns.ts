import { cancelled, type IsolationError, throwIfCancelled } from "../backend/isolation-error.ts";

interface Waiting {
  readonly admit: () => void;
  readonly refuse: (error: unknown) => void;
}

/** One caller at a time, first come first served. Who gives up leaves the queue. */
export class Turns {
  readonly #waiting = new Set<Waiting>();
  #taken = false;
  #closed: (() => IsolationError) | undefined;

  get idle(): boolean {
    return !this.#taken;
  }

  /** Resolves with the function that ends the turn. */
  async take(signal: AbortSignal | undefined): Promise<() => void> {
    if (this.#closed !== undefined) throw this.#closed();
    throwIfCancelled(signal);
    if (this.#taken) await this.#wait(signal);
    this.#taken = true;
    return () => this.#next();
  }

  /** Who waits, or comes later, gets the error. */
  close(reason: () => IsolationError): void {
    this.#closed = reason;
    for (const { refuse } of this.#waiting) refuse(reason());
    this.#waiting.clear();
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const place: Waiting = { admit: resolve, refuse: reject };
    const leave = () => {
      if (this.#waiting.delete(place)) reject(cancelled(signal?.reason));
    };
    this.#waiting.add(place);
    signal?.addEventListener("abort", leave, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#taken = false;
      return;
    }
    this.#waiting.delete(first);
    first.admit();
  }
}
