/** A mistake in a text, and where it is; lines and columns count from 1. */
export class YamlError extends Error {
  override readonly name = "YamlError";
  readonly line: number;
  readonly column: number;

  constructor(message: string, place: { readonly line: number; readonly column: number }) {
    super(message);
    this.line = place.line;
    this.column = place.column;
  }
}

/** The policy file of a project cannot be used. The message begins with the file and, where there is one, the place. */
export class ProjectPolicyError extends Error {
  override readonly name = "ProjectPolicyError";
  readonly path: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** What to do about it. */
  readonly hint: string | undefined;

  constructor(
    path: string,
    problem: string,
    more: { readonly line?: number; readonly column?: number; readonly hint?: string; readonly cause?: unknown } = {},
  ) {
    const place = more.line === undefined ? "" : `:${more.line}:${more.column}`;
    super(`${path}${place}: ${problem}`, more.cause === undefined ? {} : { cause: more.cause });
    this.path = path;
    this.line = more.line;
    this.column = more.column;
    this.hint = more.hint;
  }
}
