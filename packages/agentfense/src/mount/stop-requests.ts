const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The wishes to end: the first signal asks politely, the second means it. */
export class StopRequests implements Disposable {
  readonly first: Promise<void>;
  readonly second: Promise<void>;
  readonly #onSignal: () => void;
  #received = 0;

  constructor() {
    const { promise: first, resolve: resolveFirst } = Promise.withResolvers<void>();
    const { promise: second, resolve: resolveSecond } = Promise.withResolvers<void>();
    this.first = first;
    this.second = second;
    this.#onSignal = () => {
      this.#received += 1;
      (this.#received === 1 ? resolveFirst : resolveSecond)();
    };
    for (const signal of SIGNALS) process.on(signal, this.#onSignal);
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal);
  }
}
