import { constants } from "node:os";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** How long cleaning up may still take once somebody asked twice. */
const HURRY_MS = 2_000;

/**
 * Whatever ends a run before its command does: a signal, or a reader of our output that went away (SIGPIPE, as the command
 * itself would have met it). The first one aborts `signal`; a second one gives the cleaning up two seconds.
 */
export class Interruption implements Disposable {
  readonly #controller = new AbortController();
  readonly #onSignal = (name: NodeJS.Signals): void => this.#receive(name);
  readonly #onOutputError = (error: NodeJS.ErrnoException): void => {
    if (error.code !== "EPIPE" && error.code !== "ECONNRESET") throw error;
    if (this.#received === undefined) this.#receive("SIGPIPE");
  };
  #received: NodeJS.Signals | undefined;

  constructor() {
    for (const name of SIGNALS) process.on(name, this.#onSignal);
    for (const stream of [process.stdout, process.stderr]) stream.on("error", this.#onOutputError);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** 128 + n for the signal n that came; undefined while none did. */
  get exitCode(): number | undefined {
    return this.#received === undefined ? undefined : 128 + constants.signals[this.#received];
  }

  [Symbol.dispose](): void {
    for (const name of SIGNALS) process.off(name, this.#onSignal);
    for (const stream of [process.stdout, process.stderr]) stream.off("error", this.#onOutputError);
  }

  #receive(name: NodeJS.Signals): void {
    if (this.#received === undefined) {
      this.#received = name;
      this.#controller.abort(name);
      return;
    }
    // What is left then is removed by the next start.
    setTimeout(() => process.exit(this.exitCode), HURRY_MS).unref();
  }
}
