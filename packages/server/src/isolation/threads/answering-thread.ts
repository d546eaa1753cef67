import { type Transferable, Worker } from "node:worker_threads";
import type { Failure, FromThread, ToThread } from "./answer.ts";
import { threadEnvironment } from "./environment.ts";

/** What the thread threw for a request, on the thread that asked. */
export class ThreadError extends Error {
  readonly code: string | undefined;
  readonly errno: number | undefined;

  constructor({ message, name, stack, code, errno }: Failure) {
    super(message, { cause: stack });
    this.name = name;
    this.code = code;
    this.errno = errno;
  }
}

export interface AskOptions {
  readonly signal?: AbortSignal | undefined;
  /** Buffers and ports in the request that move instead of being copied. */
  readonly transfer?: readonly Transferable[];
}

/** The caller's end of a worker thread that answers requests, in whatever order it likes (its own end: answer.ts). */
export class AnsweringThread {
  /** Rejects when it ends before it has started. */
  readonly started: Promise<void>;
  /** Resolves with the reason when it has ended. */
  readonly ended: Promise<string>;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #nextId = 1;
  #onIdle: (() => void) | undefined;
  #lost: Error | undefined;

  constructor(options: {
    readonly main: URL;
    readonly name: string;
    readonly data?: unknown;
    /** Default true. Otherwise the process ends although the thread is there, even with requests under way. */
    readonly holdsProcess?: boolean | undefined;
  }) {
    const { name, main, data } = options;
    this.#worker = new Worker(main, { name, workerData: data, env: threadEnvironment() });
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<string>();
    this.started = started.promise;
    this.started.catch(() => {}); // for those who do not wait for it
    this.ended = ended.promise;
    let failure: Error | undefined;
    this.#worker.on("error", (error: Error) => {
      failure = error;
    });
    this.#worker.on("exit", () => {
      const reason = failure?.message ?? "it stopped by itself";
      const lost = new Error(`the thread ${options.name} ended: ${reason}`, { cause: failure });
      started.reject(lost);
      this.#lose(lost);
      ended.resolve(reason);
    });
    this.#worker.on("message", (message: FromThread) => {
      if (message.kind === "started") started.resolve();
      else this.#take(message);
    });
    // After the listeners: adding one for messages takes hold of the process again.
    if (options.holdsProcess === false) this.#worker.unref();
  }

  get isAlive(): boolean {
    return this.#lost === undefined;
  }

  /** How many requests it has not answered. */
  get busy(): number {
    return this.#waiting.size;
  }

  ask(request: unknown, { signal, transfer }: AskOptions = {}): Promise<unknown> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    const id = this.#nextId++;
    this.#send({ kind: "ask", id, request }, transfer);
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    if (signal === undefined) return answer;
    const abort = (): void => this.#send({ kind: "abort", id });
    signal.addEventListener("abort", abort, { once: true });
    return answer.finally(() => signal.removeEventListener("abort", abort));
  }

  /** Waits for what was asked, then ends it. */
  async stop(): Promise<void> {
    if (this.busy > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    this.#send({ kind: "stop" });
    await this.ended;
  }

  /** Whoever waits gets this error; resolves when it is gone, which a thread that is stuck in the kernel may never be. */
  async abandon(error: Error): Promise<void> {
    this.#lose(error);
    await this.#worker.terminate();
  }

  #send(message: ToThread, transfer: readonly Transferable[] = []): void {
    if (this.isAlive) this.#worker.postMessage(message, [...transfer]);
  }

  #take(message: Exclude<FromThread, { kind: "started" }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.kind === "answer") waiting?.resolve(message.value);
    else waiting?.reject(new ThreadError(message.failure));
    if (this.busy === 0) this.#onIdle?.();
  }

  #lose(error: Error): void {
    this.#lost ??= error;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
    this.#onIdle?.();
  }
}
