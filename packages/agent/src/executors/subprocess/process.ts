import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { ExecutorError } from "../../errors.ts";
import type { ExecutionOutcome } from "../../types.ts";
import { CollectedOutput } from "../collected-output.ts";
import { BoxDescriptor } from "./box.ts";

export interface ProcessPlan {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly directory: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** For bwrap to read; absent: there is no box. */
  readonly syscallFilter: Uint8Array | undefined;
}

const GRACE_MS = 1_000;

/**
 * Runs a program without a shell, in a process group of its own. A box dies with the first process of its group, and
 * with it whatever the code started.
 */
export async function runProcess(plan: ProcessPlan): Promise<ExecutionOutcome> {
  const { argv, directory, env, signal, stdin, syscallFilter, timeoutMs } = plan;
  signal.throwIfAborted();
  const startedAtMs = performance.now();
  const [program, ...args] = argv;
  const stdio = new Array<"pipe">(syscallFilter === undefined ? 3 : 5).fill("pipe");
  const child = spawn(program, args, { cwd: directory, env, stdio, detached: true });
  const stdout = collect(child.stdout!);
  const stderr = collect(child.stderr!);
  const status = syscallFilter === undefined ? undefined : boxStatus(child, syscallFilter);
  give(child.stdin!, stdin);
  const exit = exitOf(child);
  const closed = once(child, "close").catch(() => {});
  const group = await started(child);
  let timedOut = false;
  const kill = (): void => killGroup(group);
  const timer = setTimeout(() => {
    timedOut = true;
    kill();
  }, timeoutMs);
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  let exitCode: number;
  try {
    exitCode = await exit;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", kill);
    kill();
  }
  // Without a box, whoever left the group may hold the outputs open for as long as he likes.
  await (status === undefined ? Promise.race([closed, delay(GRACE_MS, undefined, { ref: false })]) : closed);
  child.stdout!.destroy();
  child.stderr!.destroy();
  signal.throwIfAborted();
  if (!timedOut && status !== undefined) expectEnd(await status, exitCode, stderr.text);
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    exitCode,
    timedOut,
    outOfMemory: !timedOut && exitCode !== 0 && tellsOfMemory(stderr.text),
    truncated: stdout.isTruncated || stderr.isTruncated,
    durationMs: performance.now() - startedAtMs,
  };
}

function collect(stream: Readable): CollectedOutput {
  const output = new CollectedOutput();
  stream.on("data", (piece: Buffer) => output.add(piece));
  return output;
}

/** A program that ends without reading its input is no failure of ours. */
function give(stream: Writable, content: string | Uint8Array): void {
  stream.on("error", () => {});
  stream.end(content);
}

/** Gives bwrap its filter. What it tells is there when it has ended. */
function boxStatus(child: ChildProcess, filter: Uint8Array): Promise<string> {
  give(child.stdio[BoxDescriptor.filter] as Writable, filter);
  return text(child.stdio[BoxDescriptor.status] as Readable).catch(() => "");
}

/** Only of a program that was begun does bwrap tell an exit code. */
function expectEnd(status: string, exitCode: number, complaint: string): void {
  if (status.includes('"exit-code"')) return;
  if (exitCode > 128) throw new ExecutorError("INTERNAL", "the box was killed, and the code may have run");
  throw new ExecutorError("UNAVAILABLE", "bubblewrap cannot make a box on this machine", {
    hint: "`agentfense doctor` tells why; nothing is run without a box",
    cause: new Error(complaint),
  });
}

/** The process id, which is also that of its group. */
async function started(child: ChildProcess): Promise<number> {
  try {
    await once(child, "spawn");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new ExecutorError("UNAVAILABLE", `the process cannot be started: ${code}`);
  }
  return child.pid!;
}

async function exitOf(child: ChildProcess): Promise<number> {
  return await new Promise<number>((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal!]));
  });
}

function killGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** The interpreters' own last words; the kernel says nothing, since it is the allocation that fails. */
function tellsOfMemory(stderr: string): boolean {
  return /^MemoryError\b|heap out of memory|^# Fatal process out of memory|ERR_MEMORY_ALLOCATION_FAILED/m.test(stderr);
}
