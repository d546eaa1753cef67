import { constants } from "node:os";
import type { ProcessExit } from "../backend/backend.ts";
import type { ExecOutcome } from "./api.ts";

const NAMES = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** The signal that an exit code of 128 + n speaks of, by the convention of shells. */
function exitSignal(exitCode: number): string | undefined {
  return exitCode > 128 ? NAMES.get(exitCode - 128) : undefined;
}

/** How a process ended, without a command's limits unless they are told. */
export function outcomeOf(
  { exitCode, outOfMemory }: ProcessExit,
  { durationMs = 0, timedOut = false, truncated = false } = {},
): ExecOutcome {
  const signal = exitSignal(exitCode);
  return { exitCode, ...(signal === undefined ? {} : { signal }), timedOut, truncated, outOfMemory, durationMs };
}
