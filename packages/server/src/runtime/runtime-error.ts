import type { IsolationErrorCode } from "../isolation/backend/isolation-error.ts";

/** Everything a call can be refused for, below the wire. The service gives each its status (protocol's registry). */
export type RuntimeErrorCode =
  /** What isolation refuses; what it says of a file is told apart below. */
  | Exclude<IsolationErrorCode, "FILE_FAILED">
  | "UNAUTHENTICATED"
  /** The server cannot reach its database, or it is another server's now. */
  | "DATABASE_UNAVAILABLE"
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
  /** It is in ERROR; its reason is in the message. */
  | "SANDBOX_FAILED"
  | "SYNC_REFUSED"
  | "SESSION_NOT_FOUND"
  | "HOME_NOT_FOUND"
  | "SNAPSHOT_NOT_FOUND"
  /** A sandbox that cannot have a snapshot, or be brought back to one, as it is. */
  | "SNAPSHOT_REFUSED"
  | "KEY_NOT_FOUND"
  | "SECRET_NOT_FOUND"
  /** There is no key to seal a secret with, or not the one that it was sealed with. */
  | "SEALING_KEY_MISSING"
  | "COMMAND_TIMEOUT"
  /** The rules, or the file system, refuse an operation on a file of a sandbox's view. */
  | "FILE_PERMISSION_DENIED"
  | "FILE_EXISTS"
  /** Not a directory, is a directory, not empty, leads out of the workspace … */
  | "FILE_WRONG_KIND"
  /** A limit of the owner or of the server: sandboxes, sessions, bytes, files. */
  | "LIMIT_EXCEEDED"
  | "RATE_LIMITED"
  | "SHUTTING_DOWN";

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
    options: { details?: Readonly<Record<string, string>>; hint?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "RuntimeError";
    this.code = code;
    this.details = options.details ?? {};
    this.hint = options.hint;
  }
}

/** An error of the machine (the disk, a thread, the store) as a caller is told it: no path of the host, the truth in `cause`. */
export function fromMachine(
  cause: unknown,
  { full, hint, otherwise }: { readonly full: string; readonly hint?: string; readonly otherwise: string },
): RuntimeError {
  const { name, code } = (cause ?? {}) as { readonly name?: unknown; readonly code?: unknown };
  if (name === "AbortError" || name === "TimeoutError") {
    return new RuntimeError("CANCELLED", "the call was cancelled", { cause });
  }
  if (code === "ENOSPC" || code === "EDQUOT") return new RuntimeError("RESOURCES_EXHAUSTED", full, { hint, cause });
  if (code === "ENOMEM" || code === "ENFILE" || code === "EMFILE") {
    return new RuntimeError("RESOURCES_EXHAUSTED", "the server is out of memory or descriptors", { cause });
  }
  return new RuntimeError("INTERNAL", otherwise, { cause });
}

export function invalid(message: string, hint?: string): RuntimeError {
  return new RuntimeError("INVALID_ARGUMENT", message, { hint });
}
