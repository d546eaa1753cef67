import { once } from "node:events";
import { PassThrough, type Readable, type Writable } from "node:stream";
import type { BoxProcess, ProcessExit } from "../backend/backend.ts";
import type { MockAnswer } from "./plan.ts";

const KILLED = 128 + 9;

/** A command that is only acted: it prints what the script says, then ends. */
export class MockProcess implements BoxProcess {
  readonly stdin?: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exit: Promise<ProcessExit>;
  readonly #killed = new AbortController();
  #over = false;

  constructor(answer: MockAnswer, options: { stdin: boolean; onKill: () => void }) {
    const stdin = new PassThrough();
    const stdout = new PassThrough();
    const stderr = new PassThrough();
    if (options.stdin) this.stdin = stdin;
    else stdin.end();
    this.stdout = stdout;
    this.stderr = stderr;
    this.#killed.signal.addEventListener("abort", options.onKill, { once: true });
    this.exit = this.#act(answer, { stdin, stdout, stderr }).finally(() => {
      this.#over = true;
      stdout.end();
      stderr.end();
    });
  }

  /** It dies of every signal. */
  async signal(): Promise<void> {
    this.kill();
  }

  kill(): void {
    if (!this.#over) this.#killed.abort();
  }

  async #act(
    answer: MockAnswer,
    { stdin, stdout, stderr }: { stdin: PassThrough; stdout: PassThrough; stderr: PassThrough },
  ): Promise<ProcessExit> {
    if (answer.echoesStdin) for await (const chunk of stdin) await write(stdout, chunk as Buffer);
    else stdin.resume();
    if (answer.stdout !== undefined) await write(stdout, answer.stdout);
    if (answer.stderr !== undefined) await write(stderr, answer.stderr);
    const survived = await this.#lives(answer.durationMs ?? 0);
    return { exitCode: survived ? (answer.exitCode ?? 0) : KILLED, outOfMemory: answer.outOfMemory ?? false };
  }

  /** Whether it lived its time out. */
  async #lives(durationMs: number): Promise<boolean> {
    const { signal } = this.#killed;
    if (signal.aborted) return false;
    if (durationMs === 0) return true;
    return await new Promise((resolve) => {
      // No timer waits for ever: it is long enough to be killed.
      const timer = setTimeout(() => resolve(true), Math.min(durationMs, 2 ** 31 - 1));
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve(false);
      });
    });
  }
}

/** A reader that went away is no reason to wait. */
async function write(stream: PassThrough, data: string | Uint8Array): Promise<void> {
  if (stream.destroyed || stream.write(data)) return;
  await Promise.race([once(stream, "drain"), once(stream, "close")]);
}
