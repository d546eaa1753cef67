/** Everything that can go wrong with a sandbox and is worth telling apart. */
export type IsolationErrorCode =
  /** The request cannot be right: a name, a number, a path of a wrong shape. */
  | "INVALID_ARGUMENT"
  /** The sandbox is not in the state the call needs. */
  | "SANDBOX_NOT_RUNNING"
  | "SANDBOX_PAUSED"
  /** The working directory does not exist in the sandbox, or is none. */
  | "WORKDIR_UNUSABLE"
  /** The program or the shell does not exist in the sandbox. */
  | "PROGRAM_NOT_FOUND"
  | "SESSION_CLOSED"
  | "CONTEXT_NOT_FOUND"
  /** More of something than a sandbox may have. */
  | "LIMIT_EXCEEDED"
  /** Nothing accepts connections at a port of the sandbox. */
  | "PORT_CLOSED"
  /** Another sandbox runs with this home. */
  | "HOME_IN_USE"
  | "PROCESS_NOT_FOUND"
  /** The process has ended, or has not what the call needs: an input, a terminal. */
  | "PROCESS_UNSUITABLE"
  /** A process waited in vain for somebody to read its output. */
  | "READER_TOO_SLOW"
  | "IMAGE_NOT_FOUND"
  /** This host lacks something: bwrap, user namespaces, an engine, a network helper. */
  | "RUNTIME_UNAVAILABLE"
  /** The host's own limits: processes, descriptors, memory, disk. */
  | "RESOURCES_EXHAUSTED"
  /** The caller's signal ended the call. */
  | "CANCELLED"
  /** A file operation in the view was refused; `errno` says how. */
  | "FILE_FAILED"
  /** The box broke; a defect of ours or of the host. */
  | "INTERNAL";

/** The message is safe to show to the agent's owner: it names no path of the host. What it really was is in `cause`. */
export class IsolationError extends Error {
  readonly code: IsolationErrorCode;
  /** What to do about it, for a person. */
  readonly hint: string | undefined;
  /** "ENOENT" …, of FILE_FAILED. */
  readonly errno: string | undefined;

  constructor(
    code: IsolationErrorCode,
    message: string,
    options: { hint?: string | undefined; cause?: unknown; errno?: string } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "IsolationError";
    this.code = code;
    this.hint = options.hint;
    this.errno = options.errno;
  }
}

export function cancelled(cause?: unknown): IsolationError {
  return new IsolationError("CANCELLED", "the call was cancelled", { cause });
}

export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelled(signal.reason);
}

export function notRunning(cause?: unknown): IsolationError {
  return new IsolationError("SANDBOX_NOT_RUNNING", "the sandbox is not running", { hint: "start it first", cause });
}

/** What may be told is told as it is. */
export function asIsolationError(error: unknown, message: string): IsolationError {
  return error instanceof IsolationError ? error : new IsolationError("INTERNAL", message, { cause: error });
}

export function invalid(message: string, hint?: string): IsolationError {
  return new IsolationError("INVALID_ARGUMENT", message, { hint });
}
