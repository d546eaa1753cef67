import { Errno, errnoName } from "@agentfense/fuse";
import { AnsweringThread, ThreadError } from "../threads/answering-thread.ts";
import { settledWithin } from "../waiting.ts";
import type { OPERATIONS, OperationName } from "./operations.ts";

/** A request that the kernel refused, by the name of the errno. */
export class ViewFailure extends Error {
  readonly errno: string;

  constructor(errno: number) {
    super(errnoName(errno));
    this.errno = errnoName(errno);
  }
}

/** Requests that take several steps cannot be begun again on another thread. */
const IN_STEPS: ReadonlySet<OperationName> = new Set(["list", "remove"]);

const STUCK_AFTER_MS = 15_000;
const ENDS_WITHIN_MS = 1000;

/**
 * The thread for file operations in mounts. A mount that does not answer holds it up; then the request fails (ETIMEDOUT)
 * and a new thread takes over the others. The first request starts it.
 */
export class ViewThread implements AsyncDisposable {
  readonly #stuckAfterMs: number;
  #current: WatchedThread | undefined;
  #nextSerial = 1;
  #closed = false;

  constructor(options: { readonly stuckAfterMs?: number } = {}) {
    this.#stuckAfterMs = options.stuckAfterMs ?? STUCK_AFTER_MS;
  }

  async request<Name extends OperationName>(name: Name, input: OperationInput<Name>): Promise<OperationOutput<Name>> {
    const serial = this.#nextSerial++;
    for (;;) {
      if (this.#closed) throw new ViewFailure(Errno.ENOTCONN);
      if (!this.#current?.isAlive) this.#current = new WatchedThread(this.#stuckAfterMs);
      const thread = this.#current;
      try {
        return (await thread.ask({ serial, name, input })) as OperationOutput<Name>;
      } catch (error) {
        if (error instanceof ThreadError) throw new ViewFailure(error.errno ?? Errno.EIO);
        // The thread is lost; what it had begun is lost with it, the rest is for the next one.
        if (!this.#closed && (thread.wasAt(serial) || IN_STEPS.has(name))) throw new ViewFailure(thread.lostBy);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    // One that is stuck ends when its mount does.
    if (this.#current !== undefined) await settledWithin(ENDS_WITHIN_MS, this.#current.close());
  }
}

/** One thread, given up when it has not moved for too long. */
class WatchedThread {
  readonly #progress = new Int32Array(new SharedArrayBuffer(Progress.LENGTH * Int32Array.BYTES_PER_ELEMENT));
  readonly #thread: AnsweringThread;
  readonly #stuckAfterMs: number;
  #watch: NodeJS.Timeout | undefined;
  #seen = { steps: -1, atMs: performance.now() };
  #lastAt: number | undefined;
  /** What those are told whose request it had begun. */
  lostBy: number = Errno.EIO;

  constructor(stuckAfterMs: number) {
    this.#stuckAfterMs = stuckAfterMs;
    this.#thread = new AnsweringThread({
      main: new URL("./main.ts", import.meta.url),
      name: "agentfense-view",
      data: { progress: this.#progress },
      holdsProcess: false,
    });
  }

  get isAlive(): boolean {
    return this.#thread.isAlive;
  }

  /** Whether it had begun a request when it was lost. */
  wasAt(serial: number): boolean {
    return (this.#lastAt ?? Atomics.load(this.#progress, Progress.CURRENT)) === serial;
  }

  async ask(request: ViewRequest): Promise<unknown> {
    this.#watch ??= setInterval(() => this.#look(), Math.min(1000, this.#stuckAfterMs / 4)).unref();
    try {
      return await this.#thread.ask(request);
    } finally {
      if (this.#thread.busy === 0) this.#stopWatching();
    }
  }

  close(): Promise<void> {
    this.#stopWatching();
    // It may move on before it ends.
    this.#lastAt = Atomics.load(this.#progress, Progress.CURRENT);
    return this.#thread.abandon(new Error("the view is closed"));
  }

  #look(): void {
    const steps = Atomics.load(this.#progress, Progress.STEPS);
    const isBusy = Atomics.load(this.#progress, Progress.CURRENT) !== 0;
    if (steps !== this.#seen.steps || !isBusy) this.#seen = { steps, atMs: performance.now() };
    else if (performance.now() - this.#seen.atMs >= this.#stuckAfterMs) {
      this.lostBy = Errno.ETIMEDOUT;
      void this.close();
    }
  }

  #stopWatching(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
  }
}

export type OperationInput<Name extends OperationName> = Parameters<(typeof OPERATIONS)[Name]>[0];

type Result<T> = T extends Generator<void, infer Value> ? Value : T;
/** Without the negated errnos, which come as failures. */
export type OperationOutput<Name extends OperationName> = Result<ReturnType<(typeof OPERATIONS)[Name]>>;

export interface ViewRequest {
  /** Counts up, over all threads. */
  readonly serial: number;
  readonly name: OperationName;
  readonly input: unknown;
}

// What the thread is doing, in memory that its owner can read while it is stuck in the kernel.
export const Progress = {
  /** Counts up with every step. */
  STEPS: 0,
  /** The serial of the request being worked on; 0 for none. */
  CURRENT: 1,
  LENGTH: 2,
} as const;
