import { constants } from "node:os";
import type { Box, ChannelState, InterruptSignal, ProcessExit, ShellProcess } from "../backend/backend.ts";
import { cancelled, IsolationError, invalid } from "../backend/isolation-error.ts";
import { type Cancellable, type ExecEvent, type ExecOutcome, type LimitEvent, outcomeOf } from "../exec/api.ts";
import { OutputBuffer } from "../exec/output.ts";
import { effectiveTimeout, type TimeLimits } from "../exec/request.ts";
import { settledWithin } from "../waiting.ts";
import type { BoxSession, SessionEnd, SessionExecRequest, SessionExecResult, SessionRequest } from "./api.ts";
import { type Answer, awaitReady, Conversation, drain, drainRemains } from "./conversation.ts";
import { findShell } from "./dialects.ts";
import { interrupt, untilInterrupted } from "./interruption.ts";
import { EventQueue, Outlet, type Sink } from "./outlet.ts";
import { Turns } from "./turns.ts";

export interface SessionOptions {
  readonly box: Pick<Box, "openShell" | "shells">;
  readonly id: string;
  readonly request: SessionRequest;
  /** Under the variables of the request. */
  readonly env: Readonly<Record<string, string>>;
  /** A directory inside the box, absolute. */
  readonly workdir: string;
  readonly defaults: SessionDefaults;
  /** Throws when the sandbox takes no commands now. */
  readonly admit?: (() => void) | undefined;
  /** So long one signal has to end a command before a stronger one is sent; half a second unless told. */
  readonly stageMs?: number | undefined;
  readonly onEvent?: ((event: LimitEvent) => void) | undefined;
  readonly onClosed?: ((end: SessionEnd) => void) | undefined;
}

interface Parts {
  readonly process: ShellProcess;
  readonly conversation: Conversation;
  readonly stdout: Outlet;
  readonly stderr: Outlet;
}

interface Sinks {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly truncated: () => boolean;
}

type Ending = { readonly answer: Answer } | { readonly exit: ProcessExit };

/** After an interruption the shell must answer an empty line within this time: much for it, for a busy machine it may not be. */
const SETTLE_MS = 10_000;
const REMIND_MS = 100;

/**
 * A shell that stays. One command at a time is given to it; `dialects.ts` says how.
 *
 * A command that runs out of time is interrupted as from a keyboard, then with more force (`interruption.ts`), and its
 * exit code is 128 + the signal that was needed: 130, 143 or 137. The shell survives; when it does not come back after all
 * that, in about 3 s, it is killed, and the session with it. Output of background jobs between two commands is kept for the
 * next one, 256 KiB of each stream; beyond that it is dropped and the next command says `truncated`.
 */
export class ShellSession implements BoxSession {
  readonly id: string;
  readonly shell: string;
  readonly #options: SessionOptions;
  readonly #parts: Parts;
  readonly #turns = new Turns();
  readonly #gone = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<SessionEnd>();
  readonly ended = this.#ended.promise;
  #closed: SessionEnd | undefined;
  #running: PromiseWithResolvers<Ending> | undefined;
  #idleTimer: NodeJS.Timeout | undefined;

  static async open(options: SessionOptions, { signal }: Cancellable = {}): Promise<ShellSession> {
    const { box, request, env, workdir } = options;
    if (request.idleTimeoutMs !== undefined) checkDuration("idleTimeoutMs", request.idleTimeoutMs);
    const shell = findShell(request.shell, await box.shells());
    const process = await box.openShell(
      { argv: shell.argv, env: { ...env, ...request.env, ...shell.env }, workdir },
      { signal },
    );
    const conversation = new Conversation(process);
    const parts = { process, conversation, stdout: new Outlet(process.stdout), stderr: new Outlet(process.stderr) };
    try {
      await awaitReady(parts, shell, signal);
    } catch (error) {
      process.kill();
      throw error;
    }
    return new ShellSession(options, shell.path, parts);
  }

  private constructor(options: SessionOptions, shell: string, parts: Parts) {
    this.id = options.id;
    this.shell = shell;
    this.#options = options;
    this.#parts = parts;
    parts.process.exit.then(
      (exit) => this.#exited(exit),
      (error: unknown) => this.#broke(error),
    );
    this.#restIdle();
  }

  get closed(): SessionEnd | undefined {
    return this.#closed;
  }

  async exec(request: SessionExecRequest, { signal }: Cancellable = {}): Promise<SessionExecResult> {
    const checked = checkRequest(request, this.#options.defaults);
    const { outputBytes } = this.#options.defaults;
    const [stdout, stderr] = [new OutputBuffer(outputBytes), new OutputBuffer(outputBytes)];
    const outcome = await this.#perform(
      checked,
      { stdout, stderr, truncated: () => stdout.truncated || stderr.truncated },
      signal,
    );
    return {
      ...outcome,
      stdout: stdout.take().data,
      stderr: stderr.take().data,
      sessionClosed: this.#closed !== undefined,
    };
  }

  async *execStream(
    request: SessionExecRequest,
    { signal }: Cancellable = {},
  ): AsyncGenerator<ExecEvent, void, undefined> {
    const checked = checkRequest(request, this.#options.defaults);
    const { stdout, stderr } = this.#parts;
    const left = new AbortController();
    const queue = new EventQueue(() => {
      stdout.resume();
      stderr.resume();
    });
    const sink = (kind: "stdout" | "stderr"): Sink => ({
      write: (data) => queue.push({ kind, data }, data.length),
      lost: () => queue.lost(),
    });
    const running = this.#perform(
      checked,
      { stdout: sink("stdout"), stderr: sink("stderr"), truncated: () => queue.truncated },
      signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]),
    ).then(
      (outcome) => queue.finish({ kind: "exit", outcome }),
      (error: unknown) => queue.fail(error),
    );
    try {
      yield* queue.read();
    } finally {
      queue.discard();
      left.abort();
      await running;
    }
  }

  /** To the shell alone; SIGKILL ends all that it started, too. */
  async signal(signalNumber: number): Promise<void> {
    if (signalNumber === constants.signals.SIGKILL) this.#parts.process.kill();
    else await this.#parts.process.signalShell(signalNumber);
  }

  /** Ends the shell and all it started. Idempotent. */
  async close(): Promise<void> {
    await this.end("closed");
  }

  /** As `close`, with another reason. */
  async end(reason: "closed" | "idle" | "stopped"): Promise<void> {
    this.#finish({ reason });
    this.#parts.process.kill();
    await this.#gone.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #perform(request: CheckedRequest, sinks: Sinks, signal: AbortSignal | undefined): Promise<ExecOutcome> {
    if (this.#closed === undefined) this.#options.admit?.();
    const endTurn = await this.#turns.take(signal);
    clearTimeout(this.#idleTimer);
    try {
      const outcome = await this.#run(request, sinks, signal);
      this.#report(outcome, request.timeoutMs);
      return outcome;
    } finally {
      endTurn();
      this.#restIdle();
    }
  }

  async #run(request: CheckedRequest, sinks: Sinks, signal: AbortSignal | undefined): Promise<ExecOutcome> {
    // Between being let in and getting here the session may have ended.
    if (this.#closed !== undefined) throw this.#closedError();
    const { process, conversation, stdout, stderr } = this.#parts;
    const running = Promise.withResolvers<Ending>();
    this.#running = running;
    running.promise.catch(() => {}); // it may fail before somebody waits for it
    stdout.open(sinks.stdout);
    stderr.open(sinks.stderr);
    const beganMs = performance.now();
    const oomKillsBefore = process.oomKills?.().catch(() => undefined);
    const before = await this.#channels();
    const alreadyRead = conversation.saidBytes - before.bytesUnread;
    void conversation.run(request.text).then((answer) => running.resolve({ answer }));

    const interrupted = await untilInterrupted(running.promise, request.timeoutMs, signal);
    let exitCode: number | undefined;
    if (interrupted !== undefined) exitCode = exitCodeOf(await this.#interrupt(beganMs, running.promise));
    const ending = await running.promise;
    const durationMs = performance.now() - beganMs;
    if ("answer" in ending) {
      await this.#orBreak(drain(this.#parts));
      conversation.remember({ exitStatus: exitCode ?? ending.answer.exitStatus, options: ending.answer.options });
      if (interrupted !== undefined) await this.#settle();
      const read = (await this.#channels()).bytesRead ?? Infinity;
      // Whoever read what was meant for the shell can also have answered in its place.
      if (read - (before.bytesRead ?? 0) < conversation.answeredBytes - alreadyRead) throw this.#hijacked();
    } else {
      await drainRemains(this.#parts);
      process.kill(); // background jobs end with their session
    }
    this.#running = undefined;
    if (interrupted === "cancel") throw cancelled(signal?.reason);
    const exit = {
      exitCode: exitCode ?? ("answer" in ending ? ending.answer.exitStatus : ending.exit.exitCode),
      outOfMemory: ("exit" in ending && ending.exit.outOfMemory) || (await this.#killedForMemory(oomKillsBefore)),
    };
    return outcomeOf(exit, { durationMs, timedOut: interrupted === "timeout", truncated: sinks.truncated() });
  }

  async #killedForMemory(before: Promise<number | undefined> | undefined): Promise<boolean> {
    const count = await before;
    if (count === undefined) return false;
    return ((await this.#parts.process.oomKills?.().catch(() => undefined)) ?? count) > count;
  }

  /** Throws when somebody else has the shell's channels: what comes out of them then is nobody's answer. */
  async #channels(): Promise<ChannelState> {
    const state = await this.#orBreak(this.#parts.process.channels());
    if (state.strangers > 0) throw this.#hijacked();
    return state;
  }

  #hijacked(): IsolationError {
    this.#finish({ reason: "hijacked" });
    this.#parts.process.kill();
    return this.#closedError();
  }

  /** Tells the last signal that was needed. */
  async #interrupt(beganMs: number, ended: Promise<unknown>): Promise<InterruptSignal> {
    const { process, conversation } = this.#parts;
    const command = { sinceMs: beganMs, ended, remind: () => conversation.remind() };
    const { signal, helpless } = await this.#orBreak(interrupt(process, command, this.#options.stageMs));
    if (!helpless) return signal;
    this.#abandonShell();
    return "SIGKILL";
  }

  /** A shell that cannot be signalled or asked is of no use. */
  async #orBreak<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (cause) {
      this.#abandonShell();
      throw brokenUnder(cause);
    }
  }

  /** A late signal must not hit the next command. */
  async #settle(): Promise<void> {
    const { conversation } = this.#parts;
    const reminder = setInterval(() => conversation.remind(), REMIND_MS);
    const settled = Promise.race([conversation.settle(), this.#gone.promise]);
    if (!(await settledWithin(SETTLE_MS, settled))) this.#abandonShell();
    clearInterval(reminder);
  }

  #abandonShell(): void {
    this.#finish({ reason: "killed" });
    this.#parts.process.kill();
  }

  #exited(exit: ProcessExit): void {
    this.#finish({ reason: "exited", exitCode: exit.exitCode });
    if (this.#running === undefined) this.#parts.process.kill();
    this.#running?.resolve({ exit });
    this.#gone.resolve();
  }

  #broke(cause: unknown): void {
    this.#finish({ reason: "killed" });
    this.#running?.reject(brokenUnder(cause));
    this.#gone.resolve();
  }

  /** The first reason counts. */
  #finish(end: SessionEnd): void {
    if (this.#closed !== undefined) return;
    this.#closed = end;
    clearTimeout(this.#idleTimer);
    this.#turns.close(() => this.#closedError());
    if (!["exited", "killed", "hijacked"].includes(end.reason)) this.#running?.reject(this.#closedError());
    this.#options.onClosed?.(end);
    this.#ended.resolve(end);
  }

  #closedError(): IsolationError {
    const reasons: Record<SessionEnd["reason"], string> = {
      closed: "the session was closed",
      exited: `the shell ended with exit code ${this.#closed?.exitCode}`,
      killed: "the shell was killed because it did not come back from a command",
      hijacked: "a process of the sandbox took hold of the channel between the session and its shell",
      idle: `nothing was asked of the session for ${this.#options.request.idleTimeoutMs} ms`,
      stopped: "the sandbox was stopped",
    };
    return new IsolationError("SESSION_CLOSED", reasons[this.#closed?.reason ?? "closed"], {
      hint: "open a new session",
    });
  }

  #restIdle(): void {
    const { idleTimeoutMs } = this.#options.request;
    if (idleTimeoutMs === undefined || this.#closed !== undefined || !this.#turns.idle) return;
    this.#idleTimer = setTimeout(() => void this.end("idle"), checkDuration("idleTimeoutMs", idleTimeoutMs));
    this.#idleTimer.unref();
  }

  #report(outcome: ExecOutcome, timeoutMs: number | undefined): void {
    const report = (limit: "memory" | "time" | "output", detail: string) =>
      this.#options.onEvent?.({ kind: "resource_limit_exceeded", limit, detail });
    if (outcome.timedOut) report("time", `a command of session ${this.id} ran longer than ${timeoutMs} ms`);
    if (outcome.truncated) report("output", `a command of session ${this.id} printed more than is kept`);
    if (outcome.outOfMemory) report("memory", `session ${this.id} ran out of memory`);
  }
}

function brokenUnder(cause: unknown): IsolationError {
  return new IsolationError("INTERNAL", "the sandbox broke under the session", { cause });
}

function exitCodeOf(signal: InterruptSignal): number {
  return 128 + constants.signals[signal];
}

/** Bounds of a session's commands. */
export interface SessionDefaults {
  readonly timeLimits: TimeLimits;
  /** Kept of each stream of a command. */
  readonly outputBytes: number;
}

/** bash reads its commands byte by byte, about 3 MB a second; nobody types so much. */
const LONGEST_COMMAND_BYTES = 16 * 1024 * 1024;

/** A command that can be run. */
export interface CheckedRequest {
  readonly text: Buffer;
  /** Absent: no limit. */
  readonly timeoutMs: number | undefined;
}

function checkRequest(request: SessionExecRequest, defaults: SessionDefaults): CheckedRequest {
  const { command, timeoutMs } = request;
  if (typeof command !== "string") throw invalid("the command must be a text");
  const text = Buffer.from(command);
  if (text.includes(0)) throw invalid("the command has a NUL byte in it");
  if (text.length > LONGEST_COMMAND_BYTES) throw invalid(`the command is longer than ${LONGEST_COMMAND_BYTES} bytes`);
  return { text, timeoutMs: effectiveTimeout(timeoutMs, defaults.timeLimits) };
}

/** A timer cannot run longer. */
const LONGEST_MS = 2 ** 31 - 1;

function checkDuration(name: string, ms: number): number {
  if (typeof ms !== "number" || !(ms > 0)) throw invalid(`${name} must be a number above 0`);
  return Math.min(ms, LONGEST_MS);
}
