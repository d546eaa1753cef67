import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { ring } from "@agentfense/fuse";
import { EngineCounters, type EngineData, type FromEngine, type ToEngine } from "./messages.ts";

/** The host's end of an engine thread: a mailbox with a bell. */
export class EngineThread {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly counters: EngineCounters;
  #doorbell = -1;
  #stopping = false;
  alive = true;

  private constructor(worker: Worker, port: MessagePort, counters: EngineCounters) {
    this.#worker = worker;
    this.#port = port;
    this.counters = counters;
  }

  static start(handlers: {
    onMessage: (message: FromEngine) => void;
    onLost: (reason: string) => void;
    /** Whether the process lives for as long as the thread does. */
    holdsProcess: boolean;
    shared: Pick<EngineData, "budget" | "openDirectories" | "awake">;
  }): Promise<EngineThread> {
    const { port1, port2 } = new MessageChannel();
    const counters = new EngineCounters();
    const worker = new Worker(new URL("./engine-main.ts", import.meta.url), {
      name: "agentfense-engine",
      workerData: { port: port2, counters: counters.buffer, ...handlers.shared } satisfies EngineData,
      transferList: [port2],
    });
    const engine = new EngineThread(worker, port1, counters);
    return new Promise((resolve, reject) => {
      let reason = "it stopped by itself";
      worker.on("error", (error: Error) => {
        reason = error.stack ?? error.message;
      });
      worker.on("exit", () => {
        engine.alive = false;
        port1.close();
        if (engine.#doorbell < 0) reject(new Error(`the engine thread did not start: ${reason}`));
        else if (!engine.#stopping) handlers.onLost(reason);
      });
      port1.on("message", (message: FromEngine) => {
        if (message.kind !== "started") return handlers.onMessage(message);
        engine.#hasStarted(message.doorbell);
        resolve(engine);
      });
      if (handlers.holdsProcess) return;
      worker.unref();
      port1.unref();
    });
  }

  #hasStarted(doorbell: number): void {
    this.#doorbell = doorbell;
  }

  send(message: ToEngine): void {
    if (!this.alive) throw new Error("the engine thread is gone");
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
