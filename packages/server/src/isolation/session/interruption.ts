import { constants } from "node:os";
import type { InterruptSignal, ShellProcess } from "../backend/backend.ts";
import { UNWIND_SIGNAL } from "./dialects.ts";

/** What is sent to the programs of a command that has to end: the next one if the last did not help. */
const STAGES: readonly InterruptSignal[] = ["SIGINT", "SIGTERM", "SIGKILL"];
/** So long a signal has to help, from when it reached somebody. */
const STAGE_MS = 500;
const STEP_MS = 50;

// A shell that has not come back by then never will. On a busy machine sending a signal takes its time, and so does answering
// it: what counts is that it had its chances, not only that time went by.
const GIVE_UP_MS = 2_000;
const GIVE_UP_KILLS = 20;

export interface Interruption {
  /** The last signal that reached a program; SIGINT when the shell itself was all that ran. */
  readonly signal: InterruptSignal;
  /** The command did not end. */
  readonly helpless: boolean;
}

export interface RunningCommand {
  /** When the command began, in performance.now(). */
  readonly sinceMs: number;
  /** Settles when the command has ended or the shell is gone. */
  readonly ended: Promise<unknown>;
  /** Asks the shell again whether the command has ended. */
  readonly remind: () => void;
}

/**
 * Ends the running command: its programs by signals, the shell's own loops and builtins by the unwinding trap. A program
 * gets SIGINT and SIGTERM once, for many take a second one as "now, and never mind the clean-up"; SIGKILL goes on while
 * there is something to kill. A signal that found no program is sent again: the shell may be about to start one.
 */
export async function interrupt(
  process: ShellProcess,
  { sinceMs, ended, remind }: RunningCommand,
  stageMs = STAGE_MS,
): Promise<Interruption> {
  let over = false;
  const finished = ended.then(
    () => {
      over = true;
    },
    () => {
      over = true;
    },
  );
  let stage = 0;
  let stageSinceMs = performance.now();
  let reached = 0;
  let kills = 0;
  let signal: InterruptSignal = "SIGINT";
  await process.signalShell(constants.signals.SIGCONT); // a stopped shell runs no trap
  while (!over) {
    const waitedMs = performance.now() - stageSinceMs;
    if (kills >= GIVE_UP_KILLS && waitedMs > GIVE_UP_MS) break;
    // The shell first: when its program ends, it must not go on with the next one.
    await process.signalShell(UNWIND_SIGNAL);
    if (over) break;
    if (stage < STAGES.length - 1 && waitedMs >= stageMs) {
      stage += 1;
      stageSinceMs = performance.now();
      reached = 0;
    }
    const isKill = STAGES[stage] === "SIGKILL";
    if (isKill) kills += 1;
    if (isKill || reached === 0) {
      reached = await process.signalForeground(STAGES[stage]!, sinceMs);
      if (reached > 0) signal = STAGES[stage]!;
      if (reached > 0 && !isKill) stageSinceMs = performance.now();
    }
    await Promise.race([finished, pause(STEP_MS)]);
    if (!over) remind();
  }
  return { signal, helpless: !over };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits for the end, the timeout or the caller's signal, whichever is first. */
export async function untilInterrupted(
  ended: Promise<unknown>,
  timeoutMs: number | undefined,
  signal: AbortSignal | undefined,
): Promise<"timeout" | "cancel" | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<"timeout" | "cancel" | undefined>();
  const abort = () => resolve("cancel");
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => resolve("timeout"), timeoutMs);
  timer?.unref(); // see IsolationOptions.holdsProcess
  ended.then(() => resolve(undefined), reject);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}
