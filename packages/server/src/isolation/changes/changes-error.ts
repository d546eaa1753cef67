/** Why a delta cannot be reviewed, applied or discarded as a whole. What goes wrong with one entry is in the report. */
export type ChangesErrorCode =
  /** The directory holds no delta. */
  | "NOT_A_DELTA"
  /** It cannot be opened or read. */
  | "DELTA_UNUSABLE"
  /** A live mount, or another apply or discard, has it. */
  | "DELTA_IN_USE"
  /** The codebase is not there, is no directory, or is a symlink. */
  | "CODEBASE_UNUSABLE"
  /** Another apply writes to it. */
  | "CODEBASE_IN_USE"
  /** Not a path of the workspace. */
  | "INVALID_PATH"
  /** The delta changes nothing at or below the path. */
  | "NO_CHANGE"
  /** Part of a directory that was deleted or replaced: it can only be discarded with that. */
  | "PART_OF_REPLACED_DIRECTORY";

export class ChangesError extends Error {
  override readonly name = "ChangesError";
  readonly code: ChangesErrorCode;

  constructor(code: ChangesErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
