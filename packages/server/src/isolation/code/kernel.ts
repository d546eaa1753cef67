import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Box, ProcessExit, ShellProcess } from "../backend/backend.ts";
import { cancelled, IsolationError } from "../backend/isolation-error.ts";
import { type Cancellable, outcomeOf } from "../exec/api.ts";
import { OutputBuffer } from "../exec/output.ts";
import { drain, drainRemains } from "../session/conversation.ts";
import { untilInterrupted } from "../session/interruption.ts";
import { EventQueue, Outlet } from "../session/outlet.ts";
import type { CodeError, CodeEvent, CodeOutcome } from "./api.ts";
import { type Frame, FrameReader } from "./frames.ts";

/**
 * The protocol with a kernel
 *
 * A kernel is a program in the box that runs code and keeps its names. It is started as a session's shell is: descriptor 0 is what it is
 * asked, 3 what it answers, 1 and 2 are the code's own, so that also what the code's processes print is the code's output. A shell moves 0
 * to 4, where the code's input is not, and becomes the interpreter, which first reads the kernel itself: its length, a line break, its text.
 * After that a line is asked for each piece of code:
 *
 *     {"serial": "…", "code": "…", "env": {…}, "typescript": true}
 *
 * and answered by frames, JSON in ASCII, in lines of at most 16,000 characters of it: `SERIAL - PART` for all but the last, `SERIAL . PART`
 * for that. Serial numbers cannot be guessed, so that a late word is never taken for one about the code that runs. What it prints is flushed
 * before each frame:
 *
 *     {"kind": "ready", "interpreter": "ipython"}              once, with an empty serial number
 *     {"kind": "started", "count": 3}
 *     {"kind": "result", "main": true, "waits": false, "data": {"text/plain": "2"}, "dropped": []}
 *     {"kind": "error", "name": "KeyError", "value": "'a'", "traceback": "…"}
 *     {"kind": "end"}
 *
 * With `waits` the code goes on when an empty line is asked: what it printed before has then been read, and what follows is told after it.
 * SIGINT interrupts the code that runs, and nothing when none does. The code runs in the kernel's own process: it can say in its name
 * whatever it likes, which is then the agent's word, and can reach neither another context's frames nor anything outside of the box.
 */
export interface KernelProgram {
  readonly argv: readonly [string, ...string[]];
  readonly text: string;
  /** What is missing when the program cannot be started. */
  readonly missing: string;
}

const read = (name: string): string => readFileSync(new URL(`kernels/${name}`, import.meta.url), "utf8");

// What lies in the working directory, a random.py, is the code's, and no part of what runs it.
const LOAD_PYTHON =
  "import sys; sys.path.pop(0); import os; channel = os.fdopen(4, 'rb'); exec(compile(channel.read(int(channel.readline())), '<agentfense>', 'exec'))";
const LOAD_JAVASCRIPT = `{ const f = require("node:fs"); let n = ""; const b = Buffer.alloc(1);
while (f.readSync(4, b) && b[0] !== 10) n += b.toString();
const t = Buffer.alloc(Number(n)); for (let i = 0; i < t.length; ) i += f.readSync(4, t, i, t.length - i);
new Function("require", "process", "load", t.toString())(require, process, (name) => import(name)); }`;

export const KERNELS = {
  python: {
    argv: ["python3", "-B", "-c", LOAD_PYTHON],
    text: read("kernel.py"),
    missing: "there is no python3 in the sandbox",
  },
  javascript: {
    argv: ["node", "-e", LOAD_JAVASCRIPT],
    text: read("kernel.cjs"),
    missing: "there is no node in the sandbox",
  },
} satisfies Readonly<Record<string, KernelProgram>>;

export interface KernelOptions {
  readonly box: Pick<Box, "openShell" | "shells">;
  readonly program: KernelProgram;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  /** Kept of each stream of a piece of code, and of what it shows. */
  readonly outputBytes: number;
}

export interface KernelRequest {
  readonly code: string;
  readonly env: Readonly<Record<string, string>>;
  readonly typescript: boolean;
  /** Absent: no limit. */
  readonly timeoutMs: number | undefined;
}

/** What a context has under it: see kernel.ts for Python and JavaScript, shell-interpreter.ts for shells. */
export interface Interpreter {
  readonly name: string;
  /** Resolves, with why for a person, when it is no more. */
  readonly ended: Promise<string>;
  run(request: KernelRequest, options: Cancellable): AsyncGenerator<InterpreterEvent, void, undefined>;
  /** What runs now ends as by Ctrl-C. */
  interrupt(): void;
  signal(signalNumber: number): Promise<void>;
  close(): Promise<void>;
}

export type InterpreterEvent =
  | Exclude<CodeEvent, { kind: "started" }>
  | { readonly kind: "started"; readonly count: number };

/** IPython on a busy machine takes its time. */
const READY_TIMEOUT_MS = 60_000;
const COMPLAINT_BYTES = 2_000;
/** After each the code gets the next signal; one that did not come back after the last is killed, with its names. */
const INTERRUPTS = ["SIGINT", "SIGINT", "SIGTERM", "SIGTERM", "SIGKILL", "SIGKILL"] as const;
const PATIENCE_MS = 1_500;
/** What a result costs besides its data. */
const RESULT_BYTES = 256;

interface Running {
  readonly queue: EventQueue<InterpreterEvent>;
  readonly ended: PromiseWithResolvers<ProcessExit | undefined>;
  /** Bytes that are still kept of each stream, and of results. */
  readonly room: { stdout: number; stderr: number; results: number };
  truncated: boolean;
  /** Printed, and here before the word that the code has started, which comes another way; undefined once that is here. */
  early: (InterpreterEvent & { readonly data: Buffer })[] | undefined;
  error: CodeError | undefined;
}

/** One interpreter of Python or JavaScript. Whoever has it lets one piece of code at a time run. */
export class Kernel implements Interpreter {
  readonly name: string;
  readonly ended: Promise<string>;
  readonly #process: ShellProcess;
  readonly #frames: FrameReader;
  readonly #stdout: Outlet;
  readonly #stderr: Outlet;
  readonly #outputBytes: number;
  readonly #interrupts = new Set<() => void>();
  #running: Running | undefined;
  /** Frames are dealt with one after the other: before a result comes what was printed before it. */
  #dealing: Promise<void> = Promise.resolve();
  #isClosed = false;

  static async open(options: KernelOptions, { signal }: Cancellable = {}): Promise<Kernel> {
    const { box, program, env, workdir, outputBytes } = options;
    const [shell] = await box.shells();
    if (shell === undefined) throw new IsolationError("PROGRAM_NOT_FOUND", "there is no shell in the sandbox");
    const argv = [shell, "-c", 'exec 4<&0 </dev/null; exec "$@"', shell, ...program.argv] as const;
    const process = await box.openShell({ argv: [...argv], env: { BASH_ENV: "", ...env }, workdir }, { signal });
    const [stdout, stderr] = [new Outlet(process.stdout), new Outlet(process.stderr)];
    const ready = Promise.withResolvers<Frame>();
    let kernel: Kernel | undefined;
    const frames = new FrameReader(process.status, (frame) => {
      if (kernel !== undefined) kernel.#hear(frame);
      else if (frame.kind === "ready") ready.resolve(frame);
    });
    const complaint = new OutputBuffer(COMPLAINT_BYTES);
    stdout.open(new OutputBuffer(0));
    stderr.open(complaint);
    process.commands.on("error", () => {}); // a kernel that is gone is noticed by its exit
    const text = Buffer.from(program.text);
    process.commands.write(Buffer.concat([Buffer.from(`${text.length}\n`), text]));
    process.exit.then(
      ({ exitCode }) => ready.reject(couldNotStart(exitCode, program, complaint.take().data.toString())),
      ready.reject,
    );
    const timer = setTimeout(() => ready.reject(tooSlow()), READY_TIMEOUT_MS);
    const leave = (): void => ready.reject(cancelled(signal?.reason));
    if (signal?.aborted) leave();
    signal?.addEventListener("abort", leave, { once: true });
    try {
      const { interpreter } = await ready.promise;
      await drain({ process, stdout, stderr });
      kernel = new Kernel(process, { frames, stdout, stderr, name: textOf(interpreter).slice(0, 64), outputBytes });
      return kernel;
    } catch (error) {
      process.kill();
      throw error;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", leave);
    }
  }

  private constructor(
    process: ShellProcess,
    parts: {
      readonly frames: FrameReader;
      readonly stdout: Outlet;
      readonly stderr: Outlet;
      readonly name: string;
      readonly outputBytes: number;
    },
  ) {
    this.#process = process;
    this.#frames = parts.frames;
    this.#stdout = parts.stdout;
    this.#stderr = parts.stderr;
    this.#outputBytes = parts.outputBytes;
    this.name = parts.name;
    this.ended = process.exit.then(
      (exit) => {
        this.#running?.ended.resolve(exit);
        return this.#isClosed ? "it was closed" : endWords(exit);
      },
      (error: unknown) => {
        this.#running?.ended.reject(error);
        return "the sandbox broke under it";
      },
    );
  }

  async *run(request: KernelRequest, { signal }: Cancellable): AsyncGenerator<InterpreterEvent, void, undefined> {
    const queue = new EventQueue<InterpreterEvent>(() => this.#resume());
    const ended = Promise.withResolvers<ProcessExit | undefined>();
    ended.promise.catch(() => {}); // it may fail before somebody waits for it
    const running: Running = {
      queue,
      ended,
      room: roomOf(this.#outputBytes),
      truncated: false,
      early: [],
      error: undefined,
    };
    this.#running = running;
    const left = new AbortController();
    const either = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]);
    const work = this.#perform(request, running, either).then(
      (outcome) => queue.finish({ kind: "exit", outcome }),
      (error: unknown) => queue.fail(error),
    );
    try {
      yield* queue.read();
    } finally {
      queue.discard();
      left.abort();
      await work;
      this.#running = undefined;
    }
  }

  interrupt(): void {
    for (const interrupt of this.#interrupts) interrupt();
  }

  async signal(signalNumber: number): Promise<void> {
    if (signalNumber === constants.signals.SIGKILL) this.#process.kill();
    else await this.#process.signalShell(signalNumber);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#process.kill();
    await this.ended;
  }

  async #perform(request: KernelRequest, running: Running, signal: AbortSignal): Promise<CodeOutcome> {
    const { code, env, typescript, timeoutMs } = request;
    const serial = randomBytes(12).toString("hex");
    this.#frames.expect(serial);
    this.#openOutlets(running);
    const beganMs = performance.now();
    const oomKillsBefore = this.#process.oomKills?.().catch(() => undefined);
    this.#process.commands.write(`${JSON.stringify({ serial, code, env, typescript })}\n`);

    const asked = Promise.withResolvers<void>();
    const interrupt = (): void => asked.resolve();
    this.#interrupts.add(interrupt);
    const over = running.ended.promise;
    const stopped = await Promise.race([
      untilInterrupted(over, timeoutMs, signal),
      asked.promise.then(() => "asked" as const),
    ]);
    this.#interrupts.delete(interrupt);
    if (stopped === "cancel") running.queue.discard(); // whoever left reads no more, and a program at a full pipe could not end
    if (stopped !== undefined) await this.#interrupt(beganMs, over);
    const exit = await over;
    await this.#dealing;
    const parts = { process: this.#process, stdout: this.#stdout, stderr: this.#stderr };
    if (exit === undefined) await drain(parts);
    else await drainRemains(parts);
    tellEarly(running);
    if (stopped === "cancel") throw cancelled(signal.reason);
    const outOfMemory = exit?.outOfMemory === true || (await this.#killedForMemory(oomKillsBefore));
    const error = exit === undefined ? running.error : lost(exit, outOfMemory);
    if (error !== undefined) running.queue.push({ kind: "error", error }, error.traceback.length);
    const how = {
      durationMs: performance.now() - beganMs,
      timedOut: stopped === "timeout",
      truncated: running.truncated,
    };
    const exitCode = exit?.exitCode ?? (error === undefined ? 0 : 1);
    return { ...outcomeOf({ exitCode, outOfMemory }, how), contextLost: exit !== undefined };
  }

  /** Until it has ended, or is killed. */
  async #interrupt(beganMs: number, ended: Promise<unknown>): Promise<void> {
    const over = ended.then(
      () => true,
      () => true,
    );
    try {
      await this.#process.signalShell(constants.signals.SIGCONT);
      for (const signal of INTERRUPTS) {
        await this.#process.signalShell(constants.signals.SIGINT);
        await this.#process.signalForeground(signal, beganMs);
        if (await Promise.race([over, pause(PATIENCE_MS)])) return;
      }
    } catch {
      // One that cannot be signalled is of no use.
    }
    this.#process.kill();
  }

  async #killedForMemory(before: Promise<number | undefined> | undefined): Promise<boolean> {
    const count = await before;
    if (count === undefined) return false;
    return ((await this.#process.oomKills?.().catch(() => undefined)) ?? count) > count;
  }

  #hear(frame: Frame): void {
    const running = this.#running;
    if (running === undefined) return;
    this.#dealing = this.#dealing.then(() => this.#deal(frame, running)).catch(() => {}); // the kernel's end tells more
  }

  async #deal(frame: Frame, running: Running): Promise<void> {
    switch (frame.kind) {
      case "started":
        running.queue.push({ kind: "started", count: Math.max(0, Number(frame.count) | 0) }, 0);
        tellEarly(running);
        break;
      case "result": {
        const result = { isMain: frame.main === true, data: textsOf(frame.data), dropped: namesOf(frame.dropped) };
        const bytes = RESULT_BYTES + Object.values(result.data).reduce((sum, text) => sum + text.length, 0);
        if (bytes > running.room.results) running.truncated = true;
        else {
          running.room.results -= bytes;
          await drain({ process: this.#process, stdout: this.#stdout, stderr: this.#stderr });
          if (!running.queue.push({ kind: "result", result }, bytes)) this.#frames.pause();
          this.#openOutlets(running);
        }
        if (frame.waits === true) this.#process.commands.write("\n");
        break;
      }
      case "error": {
        const { name, value, traceback } = frame;
        running.error = { name: textOf(name), value: textOf(value), traceback: textOf(traceback) };
        break;
      }
      case "end":
        running.ended.resolve(undefined);
        break;
    }
  }

  /** A stream is kept up to its limit, over the whole of the code; what is beyond it is read and dropped. */
  #openOutlets(running: Running): void {
    const { queue, room } = running;
    for (const [kind, outlet] of [
      ["stdout", this.#stdout],
      ["stderr", this.#stderr],
    ] as const) {
      outlet.open({
        write: (data) => {
          const kept = data.subarray(0, room[kind]);
          room[kind] -= kept.length;
          if (kept.length < data.length) running.truncated = true;
          if (kept.length === 0) return true;
          if (running.early === undefined) return queue.push({ kind, data: kept }, kept.length);
          running.early.push({ kind, data: kept });
          return true;
        },
        lost: () => {
          running.truncated = true;
        },
      });
    }
  }

  #resume(): void {
    this.#stdout.resume();
    this.#stderr.resume();
    this.#frames.resume();
  }
}

function tellEarly(running: Running): void {
  for (const event of running.early ?? []) running.queue.push(event, event.data.length);
  running.early = undefined;
}

function roomOf(bytes: number): Running["room"] {
  return { stdout: bytes, stderr: bytes, results: bytes };
}

function pause(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function textsOf(value: unknown): Record<string, string> {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

function namesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string").slice(0, 16) : [];
}

function endWords({ exitCode, outOfMemory }: ProcessExit): string {
  if (outOfMemory) return "it was killed because the sandbox ran out of memory";
  const { signal } = outcomeOf({ exitCode, outOfMemory });
  return signal === undefined ? `it ended with exit code ${exitCode}` : `it was ended by ${signal}`;
}

function lost(exit: ProcessExit, outOfMemory: boolean): CodeError {
  const value = `the interpreter of this context is no more: ${endWords({ ...exit, outOfMemory })}. The next code gets a new one, which knows nothing.`;
  return { name: "ContextLost", value, traceback: `ContextLost: ${value}\n` };
}

function couldNotStart(exitCode: number, program: KernelProgram, complaint: string): IsolationError {
  if (exitCode === 127 || exitCode === 126) {
    return new IsolationError("PROGRAM_NOT_FOUND", program.missing, {
      hint: "use an image or a root directory that has it, or show a toolchain of the host",
    });
  }
  const said = complaint.trim().split("\n").at(-1) ?? "";
  const why = said === "" ? "" : `: ${said}`;
  return new IsolationError("INTERNAL", `the interpreter ended with exit code ${exitCode} before it was ready${why}`);
}

function tooSlow(): IsolationError {
  return new IsolationError("INTERNAL", `the interpreter was not ready after ${READY_TIMEOUT_MS} ms`);
}
