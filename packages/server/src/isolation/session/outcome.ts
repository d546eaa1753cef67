import { constants } from "node:os";
import type { InterruptSignal } from "../backend/backend.ts";
import type { ExecOutcome } from "../sandbox/api.ts";

const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
);

/** The outcome with the signal's name where the exit code speaks of one. */
export function outcomeOf(facts: Omit<ExecOutcome, "signal">): ExecOutcome {
  const signal = facts.exitCode > 128 ? SIGNAL_NAMES.get(facts.exitCode - 128) : undefined;
  return signal === undefined ? facts : { ...facts, signal };
}

export function exitCodeOf(signal: InterruptSignal): number {
  return 128 + constants.signals[signal];
}
