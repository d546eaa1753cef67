/** The command was given wrongly: an option, an argument, a file of rules. Exit code 2. */
export class UsageError extends Error {
  /** What to do instead. */
  readonly hint: string | undefined;
  /** A word that is not known, and those that are, one of which may have been meant. */
  readonly slip: Slip | undefined;

  constructor(
    message: string,
    { hint, slip }: { readonly hint?: string | undefined; readonly slip?: Slip | undefined } = {},
  ) {
    super(message);
    this.hint = hint;
    this.slip = slip;
  }
}

interface Slip {
  readonly given: string;
  readonly known: readonly string[];
}

/** The command was right but cannot be carried out here. Exit code 1 unless given. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  /** What to do about it. */
  readonly hint: string | undefined;

  constructor(
    message: string,
    { exitCode = 1, hint }: { readonly exitCode?: number | undefined; readonly hint?: string | undefined } = {},
  ) {
    super(message);
    this.exitCode = exitCode;
    this.hint = hint;
  }
}
