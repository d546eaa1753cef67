import { Worker } from "node:worker_threads";
import { RuntimeError } from "../../errors.ts";
import type { FromStoreThread, StoreMethod, ToStoreThread } from "./protocol.ts";

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The caller's end of the thread that owns the database. */
export class StoreThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #gone: Promise<void>;
  #nextCall = 1;
  #unusable: string | undefined;

  private constructor(worker: Worker, onLost: (reason: string) => void) {
    this.#worker = worker;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gone = promise;
    let reason = "it stopped by itself";
    worker.on("error", (error: Error) => {
      reason = error.message;
    });
    worker.on("exit", () => {
      if (this.#unusable === undefined) onLost(reason);
      this.#unusable ??= `the thread of the metadata store is gone: ${reason}`;
      for (const { reject } of this.#waiting.values()) reject(new Error(this.#unusable));
      this.#waiting.clear();
      resolve();
    });
  }

  static async start(path: string, onLost: (reason: string) => void): Promise<StoreThread> {
    const worker = new Worker(new URL("./store-main.ts", import.meta.url), {
      name: "agentfense-store",
      workerData: { path },
    });
    const opened = Promise.withResolvers<void>();
    const thread = new StoreThread(worker, (reason) => {
      opened.reject(new Error(`the metadata store did not open: ${reason}`));
      onLost(reason);
    });
    worker.on("message", (message: FromStoreThread) => {
      if (message.kind === "opened") opened.resolve();
      else if (message.kind === "refused") opened.reject(new Error(message.message));
      else thread.#settle(message);
    });
    try {
      await opened.promise;
      return thread;
    } catch (error) {
      thread.#unusable = "the metadata store did not open";
      await worker.terminate();
      throw error;
    }
  }

  async call(method: StoreMethod, parameters: readonly unknown[]): Promise<unknown> {
    if (this.#unusable !== undefined) throw new Error(this.#unusable);
    const id = this.#nextCall++;
    this.#send({ kind: "call", id, method, parameters });
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject });
    return promise;
  }

  /** What was asked before is still answered. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#unusable === undefined) {
      this.#unusable = "the metadata store is closed";
      this.#send({ kind: "close" });
    }
    await this.#gone;
  }

  #send(message: ToStoreThread): void {
    this.#worker.postMessage(message);
  }

  #settle(message: Extract<FromStoreThread, { kind: "result" | "failure" }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.kind === "result") waiting?.resolve(message.result);
    else waiting?.reject(message.full ? diskFull(message.message) : new Error(message.message));
  }
}

function diskFull(cause: string): RuntimeError {
  return new RuntimeError("RESOURCES_EXHAUSTED", "the server's disk is full", { cause: new Error(cause) });
}
