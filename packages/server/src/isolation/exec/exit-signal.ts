import { constants } from "node:os";

const NAMES = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** The signal that an exit code of 128 + n speaks of, by the convention of shells. */
export function exitSignal(exitCode: number): string | undefined {
  return exitCode > 128 ? NAMES.get(exitCode - 128) : undefined;
}
