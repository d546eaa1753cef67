import { constants } from "node:os";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** The wish that the server ends. A second one is obeyed at once, whatever is left. */
export class StopSignals implements Disposable {
  readonly #controller = new AbortController();
  readonly #onSignal = (name: NodeJS.Signals): void => {
    if (this.#controller.signal.aborted) process.exit(128 + constants.signals[name]);
    this.#controller.abort(name);
  };

  constructor() {
    for (const name of SIGNALS) process.on(name, this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    for (const name of SIGNALS) process.off(name, this.#onSignal);
  }
}
