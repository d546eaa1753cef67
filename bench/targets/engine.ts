import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { WorkspaceSpec } from "@agentfense/server/isolation";
import { type Placement, placed } from "../client.ts";
import type { EngineReply, EngineRequest } from "./engine-process.ts";

const SCRIPT = fileURLToPath(new URL("engine-process.ts", import.meta.url));

const PATIENCE_MS = 30_000;

/** Our file system in a process of its own, which outlives its mounts. */
export class Engine implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<EngineReply>>();
  readonly #gone: Promise<unknown>;
  #lastId = 0;
  #errors = "";

  constructor(placement: Placement) {
    const [file, ...args] = placed([process.execPath, "--expose-gc", SCRIPT], placement);
    this.#process = spawn(file, args, {
      ...placement.identity,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      detached: true,
    });
    this.#process.stderr?.on("data", (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-2_000);
    });
    this.#process.on("message", (reply: EngineReply) => {
      this.#waiting.get(reply.id)?.resolve(reply);
      this.#waiting.delete(reply.id);
    });
    this.#process.on("error", (error) => this.#fail(error.message));
    this.#process.on("exit", (status, signal) => this.#fail(`${status ?? signal}`));
    this.#gone = once(this.#process, "exit").catch(() => undefined);
  }

  async mount(spec: WorkspaceSpec): Promise<{ passthrough: boolean }> {
    const { passthrough = false } = await this.#ask({ id: 0, do: "mount", spec });
    return { passthrough };
  }

  async unmount(mountPoint: string): Promise<void> {
    await this.#ask({ id: 0, do: "unmount", mountPoint });
  }

  /** Resident memory of the process, after a garbage collection. */
  async residentBytes(): Promise<number> {
    const { residentBytes = Number.NaN } = await this.#ask({ id: 0, do: "memory" });
    return residentBytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.connected) this.#process.disconnect();
    const giveUp = setTimeout(() => this.#process.kill("SIGKILL"), 10_000);
    await this.#gone;
    clearTimeout(giveUp);
  }

  async #ask(request: EngineRequest): Promise<Exclude<EngineReply, { error: string }>> {
    if (!this.#process.connected) throw new Error(`the engine process is gone: ${this.#lastWords()}`);
    const id = ++this.#lastId;
    const waiting = Promise.withResolvers<EngineReply>();
    this.#waiting.set(id, waiting);
    this.#process.send({ ...request, id });
    const impatience = setTimeout(() => waiting.reject(new Error(`no answer to "${request.do}"`)), PATIENCE_MS);
    const reply = await waiting.promise.finally(() => clearTimeout(impatience));
    if ("error" in reply) throw new Error(reply.error);
    return reply;
  }

  #fail(reason: string): void {
    for (const waiting of this.#waiting.values()) {
      waiting.reject(new Error(`the engine process ended: ${reason}: ${this.#lastWords()}`));
    }
    this.#waiting.clear();
  }

  #lastWords(): string {
    return this.#errors.split("\n").find((line) => /error/i.test(line)) ?? this.#errors.trim();
  }
}
