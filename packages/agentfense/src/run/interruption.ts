import { constants } from "node:os";
import { UNWRITTEN, warn } from "../output.ts";
import { NOT_RUN } from "./command-output.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** How long cleaning up may still take once somebody asked twice. */
const HURRY_MS = 2_000;

/**
 * Whatever ends a run before its command does: a signal, a reader of our output that went away (SIGPIPE, as the command
 * itself would have met it), or output that cannot be written. The first one aborts `signal`; a second one gives the cleaning up two seconds.
 */
export class Interruption implements Disposable {
  readonly #controller = new AbortController();
  readonly #onSignal = (name: NodeJS.Signals): void => this.#receive(name);
  readonly #onOutputError = (error: NodeJS.ErrnoException): void => {
    if (error.code === "EPIPE" || error.code === "ECONNRESET") {
      if (this.#received === undefined) this.#receive("SIGPIPE");
    } else if (!this.signal.aborted) {
      warn(`${UNWRITTEN} (${error.code})`);
      this.#controller.abort(error);
    }
  };
  #received: NodeJS.Signals | undefined;

  constructor() {
    for (const name of SIGNALS) process.on(name, this.#onSignal);
    for (const stream of [process.stdout, process.stderr]) stream.on("error", this.#onOutputError);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** 128 + n for the signal n that came, our own code where nothing can be printed; undefined while nothing did. */
  get exitCode(): number | undefined {
    if (this.#received !== undefined) return 128 + constants.signals[this.#received];
    return this.signal.aborted ? NOT_RUN : undefined;
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
