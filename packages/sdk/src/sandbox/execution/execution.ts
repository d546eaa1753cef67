import { commandText } from "../../client/messages/command.ts";
import { InvalidConfigurationError, SandboxError } from "../../errors.ts";
import type { Command, OutputCallbacks } from "../../model/options.ts";
import type { CommandEnd, CommandEvent, RunResult } from "../../model/records.ts";
import { Bell } from "./bell.ts";
import { Outlet, type Reader } from "./outlet.ts";
import type { StdinFeed } from "./stdin.ts";

type OutputKind = "stdout" | "stderr";

/** What an execution is made of. */
export interface ExecutionParts extends OutputCallbacks {
  readonly command: Command;
  /** Begins the call. Aborting its signal ends the command. */
  readonly open: (signal: AbortSignal) => AsyncIterable<CommandEvent>;
  /** Absent where no input can be sent. */
  readonly stdin?: StdinFeed | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A command that runs. Each of its two outputs goes to one reader:
 *
 * | who reads                          | where it goes                                                             |
 * | ---------------------------------- | ------------------------------------------------------------------------- |
 * | `stdout` or `stderr` was accessed  | to that stream, and not into the result                                   |
 * | `for await` over the execution     | to the loop, with the exit as last event, and not into the result         |
 * | a callback                         | to the callback, and into the result                                      |
 * | nobody, while somebody waits or    | into the result, up to 10 MiB; the rest is lost and the result says so    |
 * | reads the other output             | (`truncated`)                                                             |
 * | nobody, and nobody waits           | kept for whoever comes first                                              |
 *
 * A reader that does not read stops the command when 1 MiB waits for it; so does the last row. Hence `wait()` ends
 * whatever else is read or not, unless a stream was taken and is left unread: cancel that one.
 */
export class Execution implements AsyncIterable<CommandEvent>, AsyncDisposable {
  readonly command: string;
  readonly #outlets: Readonly<Record<OutputKind, Outlet>> = { stdout: new Outlet(), stderr: new Outlet() };
  readonly #streams: Partial<Record<OutputKind, ReadableStream<Uint8Array>>> = {};
  readonly #bell = new Bell();
  readonly #stdin: StdinFeed | undefined;
  readonly #stop = new AbortController();
  readonly #finished: Promise<void>;
  readonly #startedAtMs = performance.now();
  /** Somebody reads something, or waits for the end. */
  #attended = false;
  #outcome: Outcome | undefined;
  #result: RunResult | undefined;

  /** For engines and sessions; `Sandbox.exec` makes one. */
  constructor(parts: ExecutionParts) {
    this.command = commandText(parts.command);
    this.#stdin = parts.stdin;
    for (const kind of ["stdout", "stderr"] as const) {
      if (callbackOf(parts, kind) === undefined) continue;
      this.#outlets[kind].reader = "callback";
      this.#attended = true;
    }
    this.#finished = this.#run(parts);
  }

  /** Accessing it takes this output: it comes here, and not into the result. */
  get stdout(): ReadableStream<Uint8Array> {
    return this.#streamOf("stdout");
  }

  /** Accessing it takes this output: it comes here, and not into the result. */
  get stderr(): ReadableStream<Uint8Array> {
    return this.#streamOf("stderr");
  }

  /** Everything that nobody took yet, in the order it came, then the exit. Leaving the loop early ends the command. */
  [Symbol.asyncIterator](): AsyncGenerator<CommandEvent, void, undefined> {
    const taken = (["stdout", "stderr"] as const).filter((kind) => this.#outlets[kind].reader === "nobody");
    for (const kind of taken) this.#claim(kind, "events");
    return this.#events(taken);
  }

  /**
   * How it ended, with the output that nobody else took. A non-zero exit code, a timeout and being killed are results; it
   * rejects when the command could not be started, the connection was lost, or with the reason of the aborted signal.
   */
  async wait(): Promise<RunResult> {
    this.#attend();
    await this.#finished;
    this.#result ??= this.#collect(this.#end());
    return this.#result;
  }

  /** Ends the command and all it has started; resolves when that is over. */
  async kill(): Promise<void> {
    this.#stop.abort(new Killed("the command was killed"));
    this.#bell.ring();
    await this.#finished;
  }

  /** Resolves when it is on its way to the command: a command that does not read makes it wait. */
  async sendStdin(data: string | Uint8Array): Promise<void> {
    await this.#openStdin().send(typeof data === "string" ? new TextEncoder().encode(data) : data);
  }

  /** The command reads the end of its input. */
  endStdin(): void {
    this.#openStdin().end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  /** Never rejects: how it went is in the outcome. */
  async #run(parts: ExecutionParts): Promise<void> {
    const { signal } = parts;
    const abort = (): void => {
      this.#stop.abort(signal?.reason);
      this.#bell.ring();
    };
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
    try {
      this.#outcome = { end: await this.#pump(parts) };
    } catch (error) {
      this.#outcome = this.#stop.signal.aborted ? stopped(this.#stop.signal, this.#startedAtMs) : { error };
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#stdin?.close(inputIsOver);
      this.#bell.ring();
    }
  }

  async #pump(parts: ExecutionParts): Promise<CommandEnd> {
    const { signal } = this.#stop;
    signal.throwIfAborted();
    const hearing = { stdout: new Hearing(parts.onStdout), stderr: new Hearing(parts.onStderr) };
    let order = 0;
    for await (const event of parts.open(signal)) {
      if (event.kind === "exit") {
        for (const each of [hearing.stdout, hearing.stderr]) await this.#orStopped(each.end());
        return event.end;
      }
      const outlet = this.#outlets[event.kind];
      outlet.add(event.data, order++, this.#isCollected(outlet));
      this.#bell.ring();
      await this.#orStopped(hearing[event.kind].hear(event.data));
      while (this.#mustWait(outlet)) {
        await this.#bell.wait();
        signal.throwIfAborted();
      }
    }
    throw new SandboxError("the command's output ended without saying how the command did", { code: "UNKNOWN" });
  }

  #isCollected({ reader }: Outlet): boolean {
    return reader === "callback" || (reader === "nobody" && this.#attended);
  }

  #mustWait(outlet: Outlet): boolean {
    return outlet.isFull && !this.#isCollected(outlet);
  }

  /** A callback may take its time, but not longer than the command is wanted. */
  async #orStopped(work: void | Promise<void>): Promise<void> {
    if (work === undefined) return;
    const { signal } = this.#stop;
    let stop = (): void => {};
    const stopping = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
    });
    try {
      await Promise.race([work, stopping]);
      signal.throwIfAborted();
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  #streamOf(kind: OutputKind): ReadableStream<Uint8Array> {
    const stream = this.#streams[kind] ?? this.#takeStream(kind);
    this.#streams[kind] = stream;
    return stream;
  }

  #takeStream(kind: OutputKind): ReadableStream<Uint8Array> {
    this.#claim(kind, "stream");
    const outlet = this.#outlets[kind];
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const piece = await this.#next([outlet]);
          if (outlet.cancelled) return;
          if (piece !== undefined) return controller.enqueue(piece.data);
          this.#end(); // What is thrown here is the stream's error.
          controller.close();
        },
        cancel: () => {
          outlet.cancel();
          this.#bell.ring();
        },
      },
      // What waits does so in the outlet, where it is counted.
      { highWaterMark: 0 },
    );
  }

  async *#events(kinds: readonly OutputKind[]): AsyncGenerator<CommandEvent, void, undefined> {
    const outlets = kinds.map((kind) => this.#outlets[kind]);
    try {
      for (let piece = await this.#next(outlets); piece !== undefined; piece = await this.#next(outlets)) {
        yield { kind: kinds[piece.from]!, data: piece.data };
      }
      yield { kind: "exit", end: this.#end() };
    } finally {
      await this.kill();
    }
  }

  /** The oldest piece of some outputs, when there is one; undefined when the command is over and they are empty. */
  async #next(outlets: readonly Outlet[]): Promise<{ readonly from: number; readonly data: Uint8Array } | undefined> {
    for (;;) {
      const orders = outlets.map(({ nextOrder }) => nextOrder ?? Number.POSITIVE_INFINITY);
      const from = orders.indexOf(Math.min(...orders));
      const data = outlets[from]?.take();
      if (data !== undefined) {
        this.#bell.ring();
        return { from, data };
      }
      if (this.#outcome !== undefined) return undefined;
      await this.#bell.wait();
    }
  }

  #claim(kind: OutputKind, reader: "stream" | "events"): void {
    const outlet = this.#outlets[kind];
    if (outlet.reader !== "nobody") throw misuse(`${kind} has a reader already: ${READERS[outlet.reader]}`);
    if (outlet.dropped > 0) throw misuse(`${outlet.dropped} bytes of ${kind} are lost already; take it earlier`);
    outlet.reader = reader;
    this.#attend();
  }

  #collect(end: CommandEnd): RunResult {
    const { stdout, stderr } = this.#outlets;
    const kept = (outlet: Outlet): Uint8Array => (isTaken(outlet) ? new Uint8Array() : outlet.collected());
    const truncated = stdout.dropped + stderr.dropped > 0;
    return runResult({ command: this.command, end, stdout: kept(stdout), stderr: kept(stderr), truncated });
  }

  /** The end of a command that is over. */
  #end(): CommandEnd {
    const outcome = this.#outcome!;
    if ("error" in outcome) throw outcome.error;
    return outcome.end;
  }

  #attend(): void {
    this.#attended = true;
    this.#bell.ring();
  }

  #openStdin(): StdinFeed {
    if (this.#stdin !== undefined) return this.#stdin;
    throw misuse("this command takes no more input than it was started with");
  }
}

type Outcome = { readonly end: CommandEnd } | { readonly error: unknown };

/** The reason of our own for an abort. */
class Killed extends Error {}

const READERS = {
  callback: "the callback it was started with",
  stream: "its stream",
  events: "a loop over the execution",
} as const satisfies Record<Exclude<Reader, "nobody">, string>;

/** The outcome of a command that was stopped, by `kill`, which is an end like others, or by the caller's signal. */
function stopped({ reason }: AbortSignal, startedAtMs: number): Outcome {
  return reason instanceof Killed ? { end: killedEnd(performance.now() - startedAtMs) } : { error: reason };
}

function misuse(message: string): InvalidConfigurationError {
  return new InvalidConfigurationError(message, { code: "INVALID_ARGUMENT" });
}

function inputIsOver(): SandboxError {
  return new SandboxError("the command is over and reads no more input", { code: "COMMAND_FAILED" });
}

function isTaken({ reader }: Outlet): boolean {
  return reader === "stream" || reader === "events";
}

function callbackOf(callbacks: OutputCallbacks, kind: OutputKind): OutputCallbacks["onStdout"] {
  return kind === "stdout" ? callbacks.onStdout : callbacks.onStderr;
}

/** Decodes an output for a callback; a character may come in two pieces. */
class Hearing {
  readonly #callback: OutputCallbacks["onStdout"];
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(callback: OutputCallbacks["onStdout"]) {
    this.#callback = callback;
  }

  hear(data: Uint8Array): void | Promise<void> {
    if (this.#callback !== undefined) return this.#tell(this.#decoder.decode(data, { stream: true }));
  }

  end(): void | Promise<void> {
    if (this.#callback !== undefined) return this.#tell(this.#decoder.decode());
  }

  #tell(text: string): void | Promise<void> {
    if (text !== "") return this.#callback?.(text);
  }
}

/** The end of a command that was told to die: the server says nothing more about it. */
function killedEnd(durationMs: number): CommandEnd {
  return {
    exitCode: 128 + 9,
    signal: "SIGKILL",
    timedOut: false,
    outOfMemory: false,
    durationMs,
    sessionClosed: false,
    syncedVersion: 0,
    syncProblems: [],
  };
}

function runResult(parts: {
  readonly command: string;
  readonly end: CommandEnd;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  readonly truncated: boolean;
}): RunResult {
  const { command, end, stdout, stderr, truncated } = parts;
  return {
    ...end,
    command,
    success: end.exitCode === 0 && !end.timedOut,
    stdout: new TextDecoder("utf-8", { ignoreBOM: true }).decode(stdout),
    stderr: new TextDecoder("utf-8", { ignoreBOM: true }).decode(stderr),
    stdoutBytes: stdout,
    stderrBytes: stderr,
    truncated,
  };
}
