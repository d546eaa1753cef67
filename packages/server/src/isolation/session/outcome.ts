import { constants } from "node:os";
import type { InterruptSignal } from "../backend/backend.ts";
import type { ExecOutcome } from "../exec/api.ts";
import { exitSignal } from "../exec/exit-signal.ts";

/** The outcome with the signal's name where the exit code speaks of one. */
export function outcomeOf(facts: Omit<ExecOutcome, "signal">): ExecOutcome {
  const signal = exitSignal(facts.exitCode);
  return signal === undefined ? facts : { ...facts, signal };
}

export function exitCodeOf(signal: InterruptSignal): number {
  return 128 + constants.signals[signal];
}
