import type { ExecutionOutcome } from "../types.ts";

/** Of code that could not even be begun with, by its own fault. */
export function failedOutcome(stderr: string): ExecutionOutcome {
  return {
    stdout: "",
    stderr,
    exitCode: 1,
    timedOut: false,
    outOfMemory: false,
    truncated: false,
    durationMs: 0,
  };
}
