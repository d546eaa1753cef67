import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { ring } from "@agentfense/fuse";
import { threadEnvironment } from "../threads/environment.ts";
import { type FromMountThread, MountCounters, type MountThreadData, type ToMountThread } from "./messages.ts";

/** The host's end of a mount thread: a mailbox with a bell. */
export class MountThread {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly counters: MountCounters;
  #doorbell = -1;
  #stopping = false;
  alive = true;

  private constructor(worker: Worker, port: MessagePort, counters: MountCounters) {
    this.#worker = worker;
    this.#port = port;
    this.counters = counters;
  }

  static start(handlers: {
    onMessage: (message: FromMountThread) => void;
    onLost: (reason: string) => void;
    /** Whether the process lives for as long as the thread does. */
    holdsProcess: boolean;
    shared: Pick<MountThreadData, "budget" | "openDirectories" | "awake">;
  }): Promise<MountThread> {
    const { port1, port2 } = new MessageChannel();
    const counters = new MountCounters();
    const worker = new Worker(new URL("./mount-thread-main.ts", import.meta.url), {
      name: "agentfense-mount",
      env: threadEnvironment(),
      workerData: { port: port2, counters: counters.buffer, ...handlers.shared } satisfies MountThreadData,
      transferList: [port2],
    });
    const thread = new MountThread(worker, port1, counters);
    return new Promise((resolve, reject) => {
      let reason = "it stopped by itself";
      worker.on("error", (error: Error) => {
        reason = error.stack ?? error.message;
      });
      worker.on("exit", () => {
        thread.alive = false;
        port1.close();
        if (thread.#doorbell < 0) reject(new Error(`the mount thread did not start: ${reason}`));
        else if (!thread.#stopping) handlers.onLost(reason);
      });
      port1.on("message", (message: FromMountThread) => {
        if (message.kind !== "started") return handlers.onMessage(message);
        thread.#hasStarted(message.doorbell);
        resolve(thread);
      });
      if (handlers.holdsProcess) return;
      worker.unref();
      port1.unref();
    });
  }

  #hasStarted(doorbell: number): void {
    this.#doorbell = doorbell;
  }

  send(message: ToMountThread): void {
    if (!this.alive) throw new Error("the mount thread is gone");
    this.#port.postMessage(message);
    ring(this.#doorbell);
  }

  /** Tells the thread to end, without waiting. */
  abandon(): void {
    this.#stopping = true;
    if (this.alive) this.send({ kind: "stop" });
  }

  async stop(): Promise<void> {
    if (!this.alive) return;
    this.#stopping = true;
    const gone = new Promise<void>((resolve) => this.#worker.once("exit", () => resolve()));
    this.send({ kind: "stop" });
    await gone;
  }
}
