import { ChangesError, type ChangesErrorCode } from "@agentfense/server/isolation";
import { CommandFailure, UsageError } from "../failure.ts";
import { printable } from "../terminal.ts";
import { resolveDirectory } from "../workspace-directory.ts";
import { type DeltaRecord, readDeltaRecord, requireSameDirectory } from "./delta-record.ts";

/** `--delta`, without which diff, apply and discard have nothing to work on. */
export async function requireDelta(given: string | undefined): Promise<string> {
  if (given === undefined) throw new UsageError("--delta DELTA is needed: the directory that keeps the changes");
  return await resolveDirectory(given, "--delta");
}

export interface KeptDelta {
  readonly delta: string;
  /** The codebase it was made over. */
  readonly directory: string;
  readonly record: DeltaRecord | undefined;
}

/** The delta, and the codebase that it remembers or, where it does not, that is named. */
export async function requirePlaces(given: string | undefined, directory: string | undefined): Promise<KeptDelta> {
  const delta = await requireDelta(given);
  const record = await readDeltaRecord(delta);
  const named = directory ?? record?.directory;
  if (named === undefined) throw new UsageError("DIR is missing: the codebase directory, for the delta does not tell");
  const codebase = await resolveDirectory(named);
  // A delta in the codebase would be taken for part of it.
  if (`${delta}/`.startsWith(`${codebase}/`) || `${codebase}/`.startsWith(`${delta}/`)) {
    throw new UsageError(
      `DIR (${printable(codebase)}) and the delta (${printable(delta)}) must not be inside one another`,
    );
  }
  requireSameDirectory(delta, record, codebase);
  return { delta, directory: codebase, record };
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
