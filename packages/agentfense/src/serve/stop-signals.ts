import { constants } from "node:os";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** The wish that the server ends. A second signal is obeyed at once, whatever is left. */
export class StopSignals implements Disposable {
  readonly #controller = new AbortController();
  readonly #onSignal = (name: NodeJS.Signals): void => {
    if (this.#controller.signal.aborted) process.exit(128 + constants.signals[name]);
    this.#controller.abort(name);
  };

  #input: NodeJS.ReadStream | undefined;

  constructor() {
    for (const name of SIGNALS) process.on(name, this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The end of this stream is the same wish; what comes before it is thrown away. */
  alsoAtEndOf(input: NodeJS.ReadStream): void {
    this.#input = input;
    const onEnd = (): void => this.#controller.abort("end of input");
    // However the other side left, it is gone.
    input.once("end", onEnd).on("error", onEnd).resume();
  }

  [Symbol.dispose](): void {
    for (const name of SIGNALS) process.off(name, this.#onSignal);
    this.#input?.destroy(); // it would hold a process that failed
  }
}
