/** Everything a call can be refused for, below the wire. The service gives each its status (protocol's registry). */
export type RuntimeErrorCode =
  /** The request cannot be right: a name, a number, a path, a rule of a wrong shape. */
  | "INVALID_ARGUMENT"
  | "UNAUTHENTICATED"
  /** The key's role does not allow the call. */
  | "ROLE_FORBIDS"
  | "CODEBASE_NOT_FOUND"
  | "CODEBASE_IN_USE"
  /** It is a directory of the host: it has no versions and takes no uploads. */
  | "CODEBASE_IS_LOCAL"
  | "FILE_NOT_FOUND"
  | "VERSION_NOT_FOUND"
  /** The codebase is not at the version the caller built on. */
  | "VERSION_CONFLICT"
  /** A batch names content that the server does not have. */
  | "CONTENT_MISSING"
  /** What arrived is not what was announced. */
  | "UPLOAD_MISMATCH"
  | "SANDBOX_NOT_FOUND"
  | "SANDBOX_ALREADY_RUNNING"
  | "SANDBOX_NOT_RUNNING"
  | "SANDBOX_PAUSED"
  /** It is in ERROR; its reason is in the message. */
  | "SANDBOX_FAILED"
  | "SYNC_REFUSED"
  | "SESSION_NOT_FOUND"
  | "SESSION_CLOSED"
  /** Nothing accepts connections at a port of the sandbox. */
  | "PORT_CLOSED"
  | "HOME_NOT_FOUND"
  /** Another sandbox runs with it. */
  | "HOME_IN_USE"
  | "PROCESS_NOT_FOUND"
  /** The process has ended, or has not what the call needs: an input, a terminal, an output of its own. */
  | "PROCESS_UNSUITABLE"
  /** Who was attached to a process read nothing for so long that the process was let go on without. */
  | "READER_TOO_SLOW"
  | "KEY_NOT_FOUND"
  | "COMMAND_TIMEOUT"
  | "WORKDIR_UNUSABLE"
  | "PROGRAM_NOT_FOUND"
  | "RUNTIME_UNAVAILABLE"
  | "IMAGE_NOT_FOUND"
  /** The rules, or the file system, refuse an operation on a file of a sandbox's view. */
  | "FILE_PERMISSION_DENIED"
  | "FILE_EXISTS"
  /** Not a directory, is a directory, not empty, leads out of the workspace … */
  | "FILE_WRONG_KIND"
  /** A limit of the owner or of the server: sandboxes, sessions, bytes, files. */
  | "LIMIT_EXCEEDED"
  | "RATE_LIMITED"
  /** The host's own limits: processes, descriptors, memory, disk. */
  | "RESOURCES_EXHAUSTED"
  | "SHUTTING_DOWN"
  | "CANCELLED"
  /** A defect of ours or of the host. */
  | "INTERNAL";

/** The message is for the caller: it names no path of the host and nothing of another owner. */
export class RuntimeError extends Error {
  readonly code: RuntimeErrorCode;
  /** Facts for programs: `sandbox_id`, `status`, `limit` … */
  readonly details: Readonly<Record<string, string>>;
  /** What to do about it, for a person. */
  readonly hint: string | undefined;

  constructor(
    code: RuntimeErrorCode,
    message: string,
    options: { details?: Readonly<Record<string, string>>; hint?: string; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "RuntimeError";
    this.code = code;
    this.details = options.details ?? {};
    this.hint = options.hint;
  }
}
