import { type ChildProcess, fork } from "node:child_process";
import { flushCompileCache } from "node:module";
import type { Identity } from "./identity.ts";

/**
 * A child process that answers questions over Node's own channel. Questions are { id, body }, answers { id, body } or
 * { id, failure }, and what the child says unasked is { notice }.
 */
export class Peer {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve(body: unknown): void; reject(error: Error): void }>();
  readonly #label: string;
  readonly #ended: Promise<string>;
  #errors = "";
  #lastId = 0;
  #end: string | undefined;

  constructor(script: string, options: { identity: Identity; onNotice?: (notice: unknown) => void }) {
    this.#label = script.slice(script.lastIndexOf("/") + 1);
    this.#child = fork(script, {
      ...options.identity,
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: [],
      env: {
        PATH: process.env.PATH,
        HOME: "/",
        LANG: "C.UTF-8",
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      },
      cwd: "/",
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-4000);
    });
    this.#child.on("message", (message: Reply) => {
      if ("notice" in message) {
        options.onNotice?.(message.notice);
        return;
      }
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.failure === undefined) waiting?.resolve(message.body);
      else waiting?.reject(Object.assign(new Error(message.failure.message), message.failure));
    });
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#ended = promise;
    this.#child.on("error", (error) => this.#finish(error.message, resolve));
    this.#child.on("close", (code, signal) => this.#finish(signal ?? `exit ${code}`, resolve));
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get alive(): boolean {
    return this.#end === undefined;
  }

  /** How the process ended: the name of a signal, or "exit N". */
  get ended(): Promise<string> {
    return this.#ended;
  }

  ask(body: unknown): Promise<unknown> {
    if (this.#end !== undefined) return Promise.reject(new PeerEnded(this.#label, this.#end, this.#errors));
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject });
    this.#child.send({ id, body });
    return promise;
  }

  kill(signal: NodeJS.Signals = "SIGKILL"): Promise<string> {
    this.#child.kill(signal);
    return this.#ended;
  }

  #finish(reason: string, resolve: (reason: string) => void): void {
    this.#end ??= reason;
    for (const { reject } of this.#waiting.values()) reject(new PeerEnded(this.#label, reason, this.#errors));
    this.#waiting.clear();
    resolve(reason);
  }
}

/** The child ended while a question was open: `reason` is the name of a signal or "exit N". */
export class PeerEnded extends Error {
  readonly reason: string;

  constructor(label: string, reason: string, errors: string) {
    super(`${label} ended (${reason})${errors === "" ? "" : `\n${errors}`}`);
    this.reason = reason;
  }
}

type Reply =
  | { readonly id: number; readonly body?: unknown; readonly failure?: { readonly message: string } }
  | { readonly notice: unknown };

/** The child's side: answers each question with what `answer` returns or throws, until the parent is gone. */
export function answerParent(answer: (body: unknown) => unknown, atEnd: () => Promise<void> | void = () => {}): void {
  // Most of these processes are killed, and would otherwise leave nothing compiled for the next one.
  flushCompileCache();
  process.on("message", async ({ id, body }: { id: number; body: unknown }) => {
    try {
      process.send?.({ id, body: await answer(body) });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      process.send?.({ id, failure: { ...(error as object), message } });
    }
  });
  process.on("disconnect", async () => {
    await atEnd();
    process.exit(0);
  });
}

/** The child's side: tells the parent something it did not ask for. */
export function tellParent(notice: unknown): void {
  process.send?.({ notice });
}
