import { constants } from "node:os";
import type { InterruptSignal, ShellProcess } from "../backend/backend.ts";
import { UNWIND_SIGNAL } from "./dialects.ts";

/** What is sent to the programs of a command that has to end, and when: the next one if the last did not help. */
const STAGES: readonly { readonly signal: InterruptSignal; readonly afterMs: number }[] = [
  { signal: "SIGINT", afterMs: 0 },
  { signal: "SIGTERM", afterMs: 500 },
  { signal: "SIGKILL", afterMs: 1_000 },
];

/** A shell that has not come back by then never will. */
const GIVE_UP_MS = 3_000;
const STEP_MS = 50;

export interface Interruption {
  /** The last signal that was needed. */
  readonly signal: InterruptSignal;
  /** The command did not end. */
  readonly helpless: boolean;
}

/**
 * Ends the running command: its programs by signals, the shell's own loops and builtins by the unwinding trap. A program
 * gets SIGINT and SIGTERM once, for many take a second one as "now, and never mind the clean-up"; SIGKILL goes on while
 * there is something to kill.
 *
 * @param sinceMs when the command began, in performance.now()
 * @param ended settles when the command has ended or the shell is gone
 * @param remind asks the shell again whether it has
 */
export async function interrupt(
  process: ShellProcess,
  sinceMs: number,
  ended: Promise<unknown>,
  remind: () => void,
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
  const beganMs = performance.now();
  let stage = -1;
  await process.signalShell(constants.signals.SIGCONT); // a stopped shell runs no trap
  while (!over) {
    const elapsedMs = performance.now() - beganMs;
    if (elapsedMs > GIVE_UP_MS) break;
    const due = STAGES.findLastIndex(({ afterMs }) => afterMs <= elapsedMs);
    // The shell first: when its program ends, it must not go on with the next one.
    await process.signalShell(UNWIND_SIGNAL);
    if (over) break;
    if (due > stage || STAGES[due]!.signal === "SIGKILL") {
      stage = due;
      await process.signalForeground(STAGES[stage]!.signal, sinceMs);
    }
    await Promise.race([finished, pause(STEP_MS)]);
    if (!over) remind();
  }
  return { signal: STAGES[Math.max(stage, 0)]!.signal, helpless: !over };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits for the end, the timeout or the caller's signal, whichever is first. */
export async function untilInterrupted(
  ended: Promise<unknown>,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<"timeout" | "cancel" | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<"timeout" | "cancel" | undefined>();
  const abort = () => resolve("cancel");
  const timer = setTimeout(() => resolve("timeout"), timeoutMs).unref(); // see IsolationOptions.holdsProcess
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
