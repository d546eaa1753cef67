import { type ParseArgsConfig, parseArgs } from "node:util";
import { printable } from "./terminal.ts";

/** One command of the command line: what its help says and what it does with the arguments after its name. */
export interface Command {
  readonly help: string;
  /** It has something to clean up when nobody reads its output any more, and listens for that itself. */
  readonly handlesClosedOutput?: true;
  /** Gives the exit code: one of `ExitCode`, or that of a command it ran for the user. */
  run(args: readonly string[]): Promise<number>;
}

/** 0: done; 1: it did not work, or the answer is no; 2: the command was given wrongly and nothing was done. */
export type ExitCode = 0 | 1 | 2;

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

/** `parseArgs`, strict, with positionals, whose complaints are usage errors. */
export function parseArguments<const Options extends NonNullable<ParseArgsConfig["options"]>>(
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: true, allowNegative: true });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // Node adds a second sentence about positionals that begin with a dash; the first says what is wrong.
    const message = printable(error.message.split(". To specify")[0]!);
    throw new UsageError(message, { slip: unknownOption(error.message, options) });
  }
}

function unknownOption(message: string, options: NonNullable<ParseArgsConfig["options"]>): Slip | undefined {
  const [, given] = /^Unknown option '(--[^'=]+)/.exec(message) ?? [];
  if (given === undefined) return undefined;
  const known = Object.entries(options).flatMap(([name, { type }]) =>
    type === "boolean" ? [`--${name}`, `--no-${name}`] : [`--${name}`],
  );
  return { given, known: [...known, "--help"] };
}
