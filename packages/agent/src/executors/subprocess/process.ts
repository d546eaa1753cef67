import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { ExecutorError } from "../../errors.ts";
import type { ExecutionOutcome } from "../../types.ts";
import { CollectedOutput } from "../collected-output.ts";
import { killGroup, killTree } from "./process-tree.ts";
import { PROGRAM_PATH } from "./tools.ts";

interface ProcessPlan {
  readonly argv: readonly [string, ...string[]];
  readonly stdin: string;
  readonly directory: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Inherited by whatever the process starts. */
const MARK = "AGENTFENSE_EXECUTION";
const GRACE_MS = 1_000;

/** Runs a program without a shell, in a process group of its own of which nothing is left afterwards. */
export async function runProcess(plan: ProcessPlan): Promise<ExecutionOutcome> {
  const { argv, directory, signal, stdin, timeoutMs } = plan;
  signal.throwIfAborted();
  const mark = `${MARK}=${randomUUID()}`;
  const startedAtMs = performance.now();
  const [program, ...args] = argv;
  const child = spawn(program, args, { cwd: directory, env: environment(directory, mark), detached: true });
  const stdout = new CollectedOutput();
  const stderr = new CollectedOutput();
  child.stdout.on("data", (piece: Buffer) => stdout.add(piece));
  child.stderr.on("data", (piece: Buffer) => stderr.add(piece));
  // A program that ends without reading its input is no failure of ours.
  child.stdin.on("error", () => {});
  const ended = endOf(child);
  child.stdin.end(stdin);
  const group = await ended.started;
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
    exitCode = await ended.exit;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", kill);
    await killTree(group, mark);
    // Whoever got away may hold the outputs open for as long as he likes.
    await Promise.race([ended.closed, delay(GRACE_MS, undefined, { ref: false })]);
    child.stdout.destroy();
    child.stderr.destroy();
  }
  signal.throwIfAborted();
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

interface ProcessEnd {
  /** The process id, which is also that of its group. */
  readonly started: Promise<number>;
  readonly exit: Promise<number>;
  /** Nobody holds its outputs any more. */
  readonly closed: Promise<unknown>;
}

function endOf(child: ChildProcess): ProcessEnd {
  const closed = once(child, "close").catch(() => {});
  const exit = new Promise<number>((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal!]));
  });
  const started = new Promise<number>((resolve, reject) => {
    child.once("spawn", () => resolve(child.pid!));
    child.once("error", (error) => {
      reject(
        new ExecutorError("UNAVAILABLE", `the process cannot be started: ${(error as NodeJS.ErrnoException).code}`),
      );
    });
  });
  return { started, exit, closed };
}

/** Nothing of ours. */
function environment(directory: string, mark: string): NodeJS.ProcessEnv {
  return { PATH: PROGRAM_PATH, HOME: directory, LANG: "C.UTF-8", [MARK]: mark.slice(MARK.length + 1) };
}

/** The interpreters' own last words; the kernel says nothing, since it is the allocation that fails. */
function tellsOfMemory(stderr: string): boolean {
  return /^MemoryError\b|heap out of memory|^# Fatal process out of memory|ERR_MEMORY_ALLOCATION_FAILED/m.test(stderr);
}
