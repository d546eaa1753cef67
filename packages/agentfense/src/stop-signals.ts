import { once } from "node:events";
import { constants } from "node:os";
import { UNWRITTEN, warn } from "./output.ts";
import { NOT_RUN } from "./run/command-output.ts";

/** How long cleaning up may still take once somebody asked twice. */
const HURRY_MS = 2_000;

interface StopOptions {
  /** Default: those of a terminal and of whoever ends processes. */
  readonly names?: readonly NodeJS.Signals[];
  /** What a second signal does at once. */
  readonly onSecond?: (exitCode: number) => void;
}

/** The wishes to end that come as signals: the first one asks politely, the second one means it. */
export class StopSignals implements Disposable {
  readonly #names: readonly NodeJS.Signals[];
  readonly #onSecond: ((exitCode: number) => void) | undefined;
  readonly #first = new AbortController();
  readonly #second = Promise.withResolvers<void>();
  readonly #onSignal = (name: NodeJS.Signals): void => this.receive(name);
  #received: NodeJS.Signals | undefined;
  #input: NodeJS.ReadStream | undefined;

  constructor({ names = ["SIGINT", "SIGTERM", "SIGHUP"], onSecond }: StopOptions = {}) {
    this.#names = names;
    this.#onSecond = onSecond;
    for (const name of names) process.on(name, this.#onSignal);
  }

  /** For servers: what is left after a second signal is for the next start to clean up. */
  static ofServer(): StopSignals {
    return new StopSignals({ names: ["SIGTERM", "SIGINT"], onSecond: (exitCode) => process.exit(exitCode) });
  }

  /** Aborts with the first wish. */
  get signal(): AbortSignal {
    return this.#first.signal;
  }

  /** Resolves with the first wish. */
  get first(): Promise<unknown> {
    return this.signal.aborted ? Promise.resolve() : once(this.signal, "abort");
  }

  /** Resolves with the second signal. */
  get second(): Promise<void> {
    return this.#second.promise;
  }

  /** 128 + n for the signal n that came; undefined while none did. */
  get exitCode(): number | undefined {
    return this.#received === undefined ? undefined : 128 + constants.signals[this.#received];
  }

  /** Something else that ends it. */
  protected abort(reason: unknown): void {
    this.#first.abort(reason);
  }

  /** The end of this stream is the same wish; what comes before it is thrown away. */
  alsoAtEndOf(input: NodeJS.ReadStream): void {
    this.#input = input;
    const onEnd = (): void => this.abort("end of input");
    // However the other side left, it is gone.
    input.once("end", onEnd).on("error", onEnd).resume();
  }

  [Symbol.dispose](): void {
    for (const name of this.#names) process.off(name, this.#onSignal);
    this.#input?.destroy(); // it would hold a process that failed
  }

  protected receive(name: NodeJS.Signals): void {
    if (this.signal.aborted) {
      this.#second.resolve();
      this.#onSecond?.(128 + constants.signals[name]);
      return;
    }
    this.#received = name;
    this.#first.abort(name);
  }
}

/**
 * Whatever ends a run before its command does: a signal, a reader of our output that went away (SIGPIPE, as the command
 * itself would have met it), or output that cannot be written. The first one aborts `signal`; a second one gives the cleaning up two seconds.
 */
export class Interruption extends StopSignals {
  readonly #onOutputError = (error: NodeJS.ErrnoException): void => {
    if (this.signal.aborted) return;
    if (error.code === "EPIPE" || error.code === "ECONNRESET") {
      this.receive("SIGPIPE");
      return;
    }
    warn(`${UNWRITTEN} (${error.code})`);
    this.abort(error);
  };

  constructor() {
    // What is left then is removed by the next start.
    super({ onSecond: () => setTimeout(() => process.exit(this.exitCode), HURRY_MS).unref() });
    for (const stream of [process.stdout, process.stderr]) stream.on("error", this.#onOutputError);
  }

  /** 128 + n for the signal n that came, our own code where nothing can be printed; undefined while nothing did. */
  override get exitCode(): number | undefined {
    return super.exitCode ?? (this.signal.aborted ? NOT_RUN : undefined);
  }

  override [Symbol.dispose](): void {
    super[Symbol.dispose]();
    for (const stream of [process.stdout, process.stderr]) stream.off("error", this.#onOutputError);
  }
}
