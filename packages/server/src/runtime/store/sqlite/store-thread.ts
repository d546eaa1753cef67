import { AnsweringThread, ThreadError } from "../../../isolation/threads/answering-thread.ts";
import { RuntimeError } from "../../errors.ts";
import { DISK_FULL, type StoreMethod, type StoreRequest } from "./protocol.ts";

/** The caller's end of the thread that owns the database. */
export class StoreThread implements AsyncDisposable {
  readonly #thread: AnsweringThread;
  #isClosed = false;

  private constructor(thread: AnsweringThread) {
    this.#thread = thread;
  }

  static async start(path: string, onLost: (reason: string) => void): Promise<StoreThread> {
    const main = new URL("./store-main.ts", import.meta.url);
    const answering = new AnsweringThread({ main, name: "agentfense-store", data: { path } });
    const thread = new StoreThread(answering);
    try {
      await answering.started;
    } catch {
      throw new Error(await answering.ended);
    }
    void answering.ended.then((reason) => {
      if (!thread.#isClosed) onLost(reason);
    });
    return thread;
  }

  async call(method: StoreMethod, parameters: readonly unknown[]): Promise<unknown> {
    if (this.#isClosed) throw new Error("the metadata store is closed");
    try {
      return await this.#thread.ask({ method, parameters } satisfies StoreRequest);
    } catch (error) {
      if (error instanceof ThreadError && error.code === DISK_FULL) {
        throw new RuntimeError("RESOURCES_EXHAUSTED", "the server's disk is full", { cause: error });
      }
      throw error;
    }
  }

  /** What was asked before is still answered. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#thread.stop();
  }
}
