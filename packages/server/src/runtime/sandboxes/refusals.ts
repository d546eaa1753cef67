import { IsolationError, type IsolationErrorCode } from "../../isolation/backend/isolation-error.ts";
import type { ChangesErrorCode } from "../../isolation/changes/changes-error.ts";
import { fromMachine, RuntimeError, type RuntimeErrorCode } from "../runtime-error.ts";

// Where errors of the layer below become errors for callers. Texts of an IsolationError are made for the sandbox's owner; those
// of anything else may name places of the host and stay in `cause`, for the operator's log.

/** Instead of the error's own text. */
const SANDBOX_MESSAGES: Partial<Readonly<Record<IsolationErrorCode, string>>> = {
  SANDBOX_NOT_RUNNING: "sandbox is not running",
  SANDBOX_PAUSED: "sandbox is paused",
  CANCELLED: "the call was cancelled",
};

/** What a process inside would be told, as a code; anything that is not here is FILE_WRONG_KIND. */
const ERRNOS: Readonly<Record<string, RuntimeErrorCode>> = {
  ENOENT: "FILE_NOT_FOUND",
  EACCES: "FILE_PERMISSION_DENIED",
  EPERM: "FILE_PERMISSION_DENIED",
  EROFS: "FILE_PERMISSION_DENIED",
  EEXIST: "FILE_EXISTS",
  EDQUOT: "LIMIT_EXCEEDED",
  ENOSPC: "LIMIT_EXCEEDED",
  ENAMETOOLONG: "INVALID_ARGUMENT",
  EINVAL: "INVALID_ARGUMENT",
  EILSEQ: "INVALID_ARGUMENT",
  EIO: "INTERNAL",
};

const CHANGES_ERRORS: Readonly<
  Record<ChangesErrorCode, { readonly code: RuntimeErrorCode; readonly message?: string }>
> = {
  NOT_A_DELTA: { code: "FILE_NOT_FOUND", message: "the sandbox changed nothing" },
  DELTA_UNUSABLE: { code: "INTERNAL", message: "what the sandbox changed cannot be read" },
  DELTA_IN_USE: { code: "INTERNAL", message: "what the sandbox changed is in use" },
  CODEBASE_UNUSABLE: { code: "INTERNAL", message: "the codebase cannot be read" },
  CODEBASE_IN_USE: { code: "CODEBASE_IN_USE", message: "another process applies changes to the codebase" },
  INVALID_PATH: { code: "INVALID_ARGUMENT" },
  NO_CHANGE: { code: "FILE_NOT_FOUND" },
  PART_OF_REPLACED_DIRECTORY: { code: "FILE_WRONG_KIND" },
};

/** Any failure as one that a caller may see. */
export function toRuntimeError(error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error;
  if (error instanceof IsolationError) return fromIsolationError(error);
  if (isChangesFailure(error)) {
    const { code, message = error.message } = CHANGES_ERRORS[error.code];
    return new RuntimeError(code, message, { cause: error });
  }
  return fromMachine(error, {
    full: "no space is left where sandboxes keep their files",
    hint: "free some there, or choose another place for them",
    otherwise: "internal error",
  });
}

/** The result of the work, or its failure as one that a caller may see. */
export async function translating<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw toRuntimeError(error);
  }
}

export function sandboxNotFound(): RuntimeError {
  return new RuntimeError("SANDBOX_NOT_FOUND", "sandbox not found");
}

export function sandboxNotRunning(): RuntimeError {
  return new RuntimeError("SANDBOX_NOT_RUNNING", "sandbox is not running", { hint: "start it first" });
}

export function sandboxPaused(): RuntimeError {
  return new RuntimeError("SANDBOX_PAUSED", "sandbox is paused", { hint: "resume it first" });
}

export function sessionNotFound(): RuntimeError {
  return new RuntimeError("SESSION_NOT_FOUND", "session not found");
}

export function shuttingDown(): RuntimeError {
  return new RuntimeError("SHUTTING_DOWN", "the server is shutting down", { hint: "try again when it is back" });
}

function fromIsolationError(error: IsolationError): RuntimeError {
  const { code, hint } = error;
  if (code !== "FILE_FAILED") {
    const message = SANDBOX_MESSAGES[code] ?? error.message;
    return new RuntimeError(code, message, { cause: error, hint });
  }
  const errno = error.errno ?? "EIO";
  return new RuntimeError(ERRNOS[errno] ?? "FILE_WRONG_KIND", error.message, { details: { errno }, cause: error });
}

/** From a job thread errors come without their class. */
function isChangesFailure(error: unknown): error is Error & { readonly code: ChangesErrorCode } {
  if (!(error instanceof Error) || error.name !== "ChangesError" || !("code" in error)) return false;
  return typeof error.code === "string" && Object.hasOwn(CHANGES_ERRORS, error.code);
}
