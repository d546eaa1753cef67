import { ChangesError, type ChangesErrorCode } from "@agentfense/server/isolation";
import { CommandFailure, UsageError } from "../command.ts";
import { printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";

/** `--delta`, without which diff, apply and discard have nothing to work on. */
export async function requireDelta(given: string | undefined): Promise<string> {
  if (given === undefined) throw new UsageError("--delta DELTA is needed: the directory that keeps the changes");
  return await resolveDirectory(given, "--delta");
}

/** The delta and the codebase it was made over; a delta in the codebase would be taken for part of it. */
export async function requirePlaces(
  given: string | undefined,
  directory: string | undefined,
): Promise<{ delta: string; directory: string }> {
  const delta = await requireDelta(given);
  if (directory === undefined)
    throw new UsageError("DIR is missing: the codebase directory, for the delta keeps no name");
  const codebase = await resolveDirectory(directory);
  if (`${delta}/`.startsWith(`${codebase}/`) || `${codebase}/`.startsWith(`${delta}/`)) {
    throw new UsageError(
      `DIR (${printable(codebase)}) and the delta (${printable(delta)}) must not be inside one another`,
    );
  }
  return { delta, directory: codebase };
}

/** Given wrongly, or right but not possible now. */
const GIVEN_WRONGLY: Readonly<Record<ChangesErrorCode, boolean>> = {
  NOT_A_DELTA: true,
  DELTA_UNUSABLE: false,
  DELTA_IN_USE: false,
  CODEBASE_UNUSABLE: true,
  CODEBASE_IN_USE: false,
  INVALID_PATH: true,
  NO_CHANGE: true,
  PART_OF_REPLACED_DIRECTORY: true,
};

/** For `catch`: what the library refuses as a whole, in the terms of the command line. */
export function explainRefusal(error: unknown): never {
  if (!(error instanceof ChangesError)) throw error;
  const message = printable(error.message);
  throw GIVEN_WRONGLY[error.code] ? new UsageError(message) : new CommandFailure(message);
}
