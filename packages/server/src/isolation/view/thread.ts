import { Worker } from "node:worker_threads";
import { Errno, errnoName } from "@agentfense/fuse";
import {
  type FromViewThread,
  type OperationInput,
  type OperationOutput,
  Progress,
  type ToViewThread,
} from "./messages.ts";
import type { OperationName } from "./operations.ts";

/** A request that the kernel refused, by the name of the errno. */
export class ViewFailure extends Error {
  readonly errno: string;

  constructor(errno: number) {
    super(errnoName(errno));
    this.errno = errnoName(errno);
  }
}

interface Pending extends ToViewThread {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Requests that take several steps cannot be begun again on another thread. */
const IN_STEPS: ReadonlySet<OperationName> = new Set(["list", "remove"]);

const STUCK_AFTER_MS = 15_000;

/**
 * The thread for file operations in mounts. A mount that does not answer holds it up; then the request fails (ETIMEDOUT)
 * and a new thread takes over the others. The first request starts it.
 */
export class ViewThread implements AsyncDisposable {
  readonly #stuckAfterMs: number;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #progress = new Int32Array(new SharedArrayBuffer(0));
  #nextId = 1;
  #watch: NodeJS.Timeout | undefined;
  #seen = { steps: -1, atMs: 0 };
  #closed = false;

  constructor(options: { readonly stuckAfterMs?: number } = {}) {
    this.#stuckAfterMs = options.stuckAfterMs ?? STUCK_AFTER_MS;
  }

  request<Name extends OperationName>(name: Name, input: OperationInput<Name>): Promise<OperationOutput<Name>> {
    if (this.#closed) return Promise.reject(new ViewFailure(Errno.ENOTCONN));
    const id = this.#nextId++;
    return new Promise<unknown>((resolve, reject) => {
      const pending = { id, name, input, resolve, reject };
      this.#pending.set(id, pending);
      this.#send(pending);
    }) as Promise<OperationOutput<Name>>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearInterval(this.#watch);
    const worker = this.#worker;
    this.#worker = undefined;
    for (const { reject } of this.#pending.values()) reject(new ViewFailure(Errno.ENOTCONN));
    this.#pending.clear();
    // One that is stuck ends when its mount does.
    if (worker !== undefined) await Promise.race([worker.terminate(), delay(1000)]);
  }

  #send({ id, name, input }: ToViewThread): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage({ id, name, input } satisfies ToViewThread);
    this.#watch ??= setInterval(() => this.#look(), Math.min(1000, this.#stuckAfterMs / 4)).unref();
  }

  #start(): Worker {
    this.#progress = new Int32Array(new SharedArrayBuffer(Progress.LENGTH * Int32Array.BYTES_PER_ELEMENT));
    this.#seen = { steps: -1, atMs: performance.now() };
    const worker = new Worker(new URL("./main.ts", import.meta.url), {
      name: "agentfense-view",
      workerData: { progress: this.#progress },
    });
    worker.on("message", (message: FromViewThread) => this.#answered(message));
    worker.unref(); // after the listener, which takes hold of the process
    worker.on("error", () => {}); // its end says enough
    worker.on("exit", () => {
      if (this.#worker === worker) this.#replace(Errno.EIO);
    });
    return worker;
  }

  #answered(message: FromViewThread): void {
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    this.#pending.delete(message.id);
    if ("errno" in message) pending.reject(new ViewFailure(message.errno));
    else pending.resolve(message.value);
    if (this.#pending.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  #look(): void {
    const steps = Atomics.load(this.#progress, Progress.STEPS);
    const isBusy = Atomics.load(this.#progress, Progress.CURRENT) !== 0;
    if (steps !== this.#seen.steps || !isBusy) this.#seen = { steps, atMs: performance.now() };
    else if (performance.now() - this.#seen.atMs >= this.#stuckAfterMs) {
      const stuck = this.#worker;
      stuck?.removeAllListeners("message");
      this.#replace(Errno.ETIMEDOUT);
      void stuck?.terminate();
    }
  }

  /** Fails what the thread had begun, and gives the rest to a new one. */
  #replace(errno: number): void {
    const current = Atomics.load(this.#progress, Progress.CURRENT);
    this.#worker = undefined;
    for (const pending of [...this.#pending.values()]) {
      if (pending.id === current || IN_STEPS.has(pending.name)) {
        this.#pending.delete(pending.id);
        pending.reject(new ViewFailure(errno));
      } else if (!this.#closed) this.#send(pending);
    }
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
