import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Box, BoxCommand, BoxProcess, ProcessExit } from "../backend/backend.ts";
import { IsolationError, throwIfCancelled } from "../backend/isolation-error.ts";
import { type ExecEvent, type ExecOutcome, type ExecRequest, type ExecResult, outcomeOf } from "./api.ts";
import { collect, endOf } from "./output.ts";

/** A request that was checked: what to run, for how long, how much of its output to keep. */
export interface PlannedExec {
  readonly command: BoxCommand;
  readonly stdin: ExecRequest["stdin"];
  /** Absent: no limit. */
  readonly timeoutMs: number | undefined;
  readonly outputBytes: number;
}

/** A box whose processes use up all it may have can be unable to start another one; no caller waits longer for that. */
const START_TIMEOUT_MS = 20_000;

/** The caller's signal, or a start that takes too long, aborts the one that `start` is given. */
export async function startInTime<T>(start: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
  throwIfCancelled(signal);
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), START_TIMEOUT_MS);
  const either = signal === undefined ? patience.signal : AbortSignal.any([signal, patience.signal]);
  try {
    return await start(either);
  } catch (error) {
    if (!patience.signal.aborted || signal?.aborted) throw error;
    throw new IsolationError("RESOURCES_EXHAUSTED", "the sandbox could not start another command", {
      hint: "the sandbox's other commands may use all the processes it may have",
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
}

type Runner = Pick<Box, "run">;

/** Runs a command to its end. */
export async function execute(box: Runner, plan: PlannedExec, signal?: AbortSignal): Promise<ExecResult> {
  await using run = await RunningCommand.start(box, plan, signal);
  const stdout = collect(run.process.stdout, plan.outputBytes);
  const stderr = collect(run.process.stderr, plan.outputBytes);
  const exit = await run.process.exit;
  await Promise.all([stdout.ended, stderr.ended]);
  const truncated = stdout.kept.truncated || stderr.kept.truncated;
  return { ...run.outcome(exit, truncated), stdout: stdout.kept.take().data, stderr: stderr.kept.take().data };
}

/** Runs a command and passes its output on as it comes; a consumer that is slow slows the command down. */
export async function* executeStream(box: Runner, plan: PlannedExec, signal?: AbortSignal): AsyncGenerator<ExecEvent> {
  await using run = await RunningCommand.start(box, plan, signal);
  const { stdout, stderr, exit } = run.process;
  yield* interleave(stdout, stderr);
  yield { kind: "exit", outcome: run.outcome(await exit, false) };
}

/** A command under its time limit and its caller's signal. Disposing of it kills what still runs. */
class RunningCommand implements AsyncDisposable {
  readonly process: BoxProcess;
  readonly #startedAtMs = performance.now();
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #feeding: AbortController = new AbortController();
  #timedOut = false;

  private constructor(process: BoxProcess, plan: PlannedExec, signal: AbortSignal | undefined) {
    this.process = process;
    this.#signal = signal;
    const timeOut = (): void => {
      this.#timedOut = true;
      process.kill();
    };
    this.#timer = plan.timeoutMs === undefined ? undefined : setTimeout(timeOut, plan.timeoutMs);
    this.#timer?.unref(); // see IsolationOptions.holdsProcess
    signal?.addEventListener("abort", this.#onAbort);
    if (signal?.aborted) process.kill();
    if (process.stdin !== undefined) void feed(process.stdin, plan.stdin, this.#feeding.signal);
  }

  static async start(box: Runner, plan: PlannedExec, signal: AbortSignal | undefined): Promise<RunningCommand> {
    const process = await startInTime((either) => box.run(plan.command, { signal: either }), signal);
    return new RunningCommand(process, plan, signal);
  }

  readonly #onAbort = (): void => this.process.kill();

  outcome(exit: ProcessExit, truncated: boolean): ExecOutcome {
    throwIfCancelled(this.#signal);
    const durationMs = performance.now() - this.#startedAtMs;
    return outcomeOf(exit, { durationMs, timedOut: this.#timedOut, truncated });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#feeding.abort("the command is over"); // a reason of our own: making an error, with its stack, takes longer
    this.process.kill();
    this.process.stdout.destroy();
    this.process.stderr.destroy();
    await this.process.exit.catch(() => {});
  }
}

/** Writes the input as fast as the command reads it. A command that stops reading early is no error. */
async function feed(
  stdin: NonNullable<BoxProcess["stdin"]>,
  input: ExecRequest["stdin"],
  signal: AbortSignal,
): Promise<void> {
  stdin.on("error", () => {});
  if (input === undefined || typeof input === "string" || input instanceof Uint8Array) {
    stdin.end(input);
    return;
  }
  const source = input instanceof Readable ? input : Readable.from(input);
  await pipeline(source, stdin, { signal }).catch(() => {
    stdin.destroy();
  });
}

/** Both outputs as they come, to their ends. */
async function* interleave(stdout: Readable, stderr: Readable): AsyncGenerator<ExecEvent> {
  const sources = [
    { kind: "stdout", stream: stdout },
    { kind: "stderr", stream: stderr },
  ] as const;
  const open = new Set(sources.map(({ kind }) => kind));
  let wake = (): void => {};
  for (const { kind, stream } of sources) {
    stream.on("readable", () => wake());
    void endOf(stream).then(() => {
      open.delete(kind);
      wake();
    });
  }
  for (;;) {
    const changed = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const isOver = open.size === 0;
    let found = false;
    for (const { kind, stream } of sources) {
      const data = stream.read() as Buffer | null;
      if (data === null) continue;
      found = true;
      yield { kind, data };
    }
    if (found) continue;
    if (isOver) return;
    await changed;
  }
}
