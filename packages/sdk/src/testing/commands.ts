import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { Fault, FileFault, invalid } from "./faults.ts";
import type { CommandScript, MockAnswer, MockCommand, MockFiles } from "./mock-command.ts";
import { nameOf, parentOf, workspacePath } from "./path-tree.ts";
import type { MockSandbox } from "./sandbox.ts";
import { type SyncReport, syncAfterCommand } from "./sync.ts";
import type { GuardedView } from "./view.ts";

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A command, where it runs and what ends it. */
export interface MockRun {
  readonly sandbox: MockSandbox;
  /** A line for the shell, or a program and its arguments. */
  readonly command: string | readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  /** Given with the command, or coming while it runs. */
  readonly stdin: Uint8Array | AsyncIterable<Uint8Array>;
  readonly timeoutMs: number;
  /** What a timeout ends it with. */
  readonly timeoutSignal: "SIGKILL" | "SIGINT";
  readonly sessionId?: string;
  /** `signal` is the caller's; `ended` aborts with the session or the sandbox. */
  readonly signal: AbortSignal;
  readonly ended: AbortSignal;
}

export interface Outcome extends SyncReport {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly signal: string;
  readonly timedOut: boolean;
  readonly durationMs: number;
}

/** Runs commands by the answers that a test has prepared. */
export class Commands {
  readonly calls: MockCommand[] = [];
  readonly #script: CommandScript;

  constructor(script: CommandScript) {
    this.#script = script;
  }

  async run(run: MockRun): Promise<Outcome> {
    if (run.signal.aborted) throw new Fault("CANCELLED", "the call was cancelled");
    const { sandbox, timeoutMs, timeoutSignal, signal, ended, sessionId } = run;
    const command = commandOf(run);
    this.calls.push(command);
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), Math.min(timeoutMs, LONGEST_TIMER_MS));
    const killed = AbortSignal.any([signal, ended, timeout.signal]);
    const beganAtMs = performance.now();
    const over = (data: Readonly<Record<string, unknown>>): SyncReport => {
      const durationMs = Math.round(performance.now() - beganAtMs);
      sandbox.tell("command_executed", {
        ...(sessionId === undefined ? {} : { sessionId }),
        data: { command: command.command, duration_ms: durationMs, timed_out: timeout.signal.aborted, ...data },
      });
      return syncAfterCommand(sandbox);
    };
    try {
      // What pays no heed to the signal is left behind, as a process is that cannot be waited for.
      const end = await Promise.race([this.#answer(command, sandbox.view, killed), whenAborted(killed)]);
      if (signal.aborted) throw new Fault("CANCELLED", "the call was cancelled");
      const timedOut = timeout.signal.aborted;
      if (timedOut) {
        const detail = `a command was killed after ${timeoutMs} ms`;
        sandbox.tell("resource_limit_exceeded", { level: "warn", data: { limit: "time", detail } });
      }
      const killer = timedOut ? timeoutSignal : "SIGKILL";
      const result = end ?? { stdout: "", stderr: "", exitCode: exitCodeOf(killer), signal: killer };
      const durationMs = performance.now() - beganAtMs;
      return { ...result, timedOut, durationMs, ...over({ exit_code: result.exitCode }) };
    } catch (error) {
      over({ exit_code: -1, error: error instanceof Fault ? error.code : "INTERNAL" });
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #answer(command: MockCommand, view: GuardedView, signal: AbortSignal) {
    const files = filesOf(view);
    const response = this.#script.responseTo(command) ?? UNPREPARED;
    const given = typeof response === "function" ? await response(command, files) : response;
    const answer: MockAnswer = typeof given === "string" ? { stdout: given } : given;
    if (answer.delayMs !== undefined) await delay(answer.delayMs, undefined, { signal });
    const refusals = Object.entries(answer.files ?? {}).flatMap(([path, content]) => leave(files, path, content));
    const { stdout = "", stderr = "", signal: name = "" } = answer;
    const natural = name === "" ? Number(refusals.length > 0) : exitCodeOf(name);
    const exitCode = answer.exitCode ?? natural;
    return { stdout, stderr: stderr + refusals.join(""), exitCode, signal: name || signalOf(exitCode) };
  }
}

const UNPREPARED: MockAnswer = {
  stderr: "command not found: the mock engine has no answer to it; prepare one with onCommand\n",
  exitCode: 127,
};

export function checkCommand(command: string | readonly string[]): void {
  const [first = ""] = typeof command === "string" ? [command] : command;
  if (first.trim() === "") throw invalid("command is required");
}

/** Absolute; a relative one starts at the workspace. What is outside of that the mock knows nothing of. */
export function workingDirectory({ view }: MockSandbox, workdir: string): string {
  const path = workdir.startsWith("/") ? workdir : `/workspace/${workdir}`;
  if (!/^\/workspace(\/|$)/.test(path)) return path;
  const at = workspacePath(path, "workdir");
  try {
    if (view.stat(at, { follow: true }).kind === "directory") return at === "/" ? "/workspace" : `/workspace${at}`;
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
  }
  throw new Fault("WORKDIR_UNUSABLE", "the working directory does not exist in the sandbox, or is none");
}

/** 128 + n after signal n. */
function exitCodeOf(signal: string): number {
  return 128 + (constants.signals[signal as NodeJS.Signals] ?? 0);
}

function signalOf(exitCode: number): string {
  const found = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128);
  return found?.[0] ?? "";
}

function whenAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

function commandOf({ command, env, workdir, stdin, sandbox, sessionId }: MockRun): MockCommand {
  let input: Promise<string> | undefined;
  const isGiven = stdin instanceof Uint8Array;
  return {
    command: typeof command === "string" ? command : command.join(" "),
    ...(typeof command === "string" ? {} : { argv: command }),
    env: { ...sandbox.env, ...env },
    workdir,
    stdin: isGiven ? Buffer.from(stdin).toString("utf8") : "",
    sandboxId: sandbox.id,
    ...(sessionId === undefined ? {} : { sessionId }),
    readInput() {
      input ??= textOf(isGiven ? [stdin] : stdin);
      return input;
    },
  };
}

async function textOf(input: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const data of input) pieces.push(data);
  return Buffer.concat(pieces).toString("utf8");
}

/** Gives a line for what is refused. */
function leave({ write, remove }: MockFiles, path: string, content: string | null): string[] {
  try {
    if (content === null) remove(path);
    else write(path, content);
    return [];
  } catch (error) {
    if (error instanceof FileFault) return [`/bin/bash: line 1: ${path}: ${error.message}\n`];
    throw error;
  }
}

function filesOf(view: GuardedView): MockFiles {
  const readBytes = (path: string) => view.read(workspacePath(path));
  return {
    readBytes,
    read: (path) => Buffer.from(readBytes(path)).toString("utf8"),
    write(path, content) {
      const at = workspacePath(path);
      if (parentOf(at) !== "/") view.makeDirectory(parentOf(at), { recursive: true });
      view.write(at, typeof content === "string" ? Buffer.from(content) : content);
    },
    remove: (path) => view.remove(workspacePath(path), { recursive: true }),
    exists: (path) => view.shows(workspacePath(path)),
    list: (path = "/") => view.list(workspacePath(path)).map((entry) => nameOf(entry.path)),
  };
}
