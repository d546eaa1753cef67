import type { ErrorCode } from "@agentfense/protocol";
import type { RunResult } from "./model/records.ts";

/** The codes of the server's registry, and those of failures that no server tells of. */
export type SandboxErrorCode = ErrorCode | "CONNECTION_FAILED" | "COMMAND_FAILED" | "UPLOAD_FAILED" | "UNKNOWN";

export interface SandboxErrorOptions {
  readonly code: SandboxErrorCode;
  /** The same call may succeed later, unchanged; default false. */
  readonly retryable?: boolean | undefined;
  readonly hint?: string | undefined;
  readonly details?: Readonly<Record<string, string>> | undefined;
  readonly cause?: unknown;
}

/** Everything that goes wrong with a sandbox. A command that fails is no error, unless `check` asks for one. */
export class SandboxError extends Error {
  override readonly name: string = "SandboxError";
  readonly code: SandboxErrorCode;
  /** The same call may succeed later, unchanged. */
  readonly retryable: boolean;
  /** What to do about it. */
  readonly hint: string | undefined;
  /** Facts, by name: sandbox_id, path … */
  readonly details: Readonly<Record<string, string>>;

  constructor(message: string, { code, retryable = false, hint, details = {}, cause }: SandboxErrorOptions) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = retryable;
    this.hint = hint;
    this.details = details;
  }

  override toString(): string {
    return `${this.name}: ${this.message}${this.hint === undefined ? "" : ` (${this.hint})`}`;
  }
}

/** The server cannot be reached, went away, or did not answer in time. */
export class ConnectionError extends SandboxError {
  override readonly name: string = "ConnectionError";
}

/** The server wants an API key, and knows none like this one. */
export class AuthenticationError extends SandboxError {
  override readonly name: string = "AuthenticationError";
}

/** Something in the call itself is wrong: an option, a rule, a path, an unknown preset. */
export class InvalidConfigurationError extends SandboxError {
  override readonly name: string = "InvalidConfigurationError";
}

export class SandboxNotFoundError extends SandboxError {
  override readonly name: string = "SandboxNotFoundError";
}

/** It was not started, was stopped, or failed. */
export class SandboxNotRunningError extends SandboxError {
  override readonly name: string = "SandboxNotRunningError";
}

/** The server cannot isolate in the way that was asked for. */
export class RuntimeUnavailableError extends SandboxError {
  override readonly name: string = "RuntimeUnavailableError";
}

/** The rules of the sandbox, or the role of the API key, do not allow it. */
export class PermissionDeniedError extends SandboxError {
  override readonly name: string = "PermissionDeniedError";
}

/** A limit of the server, of the owner or of the sandbox. */
export class ResourceLimitExceededError extends SandboxError {
  override readonly name: string = "ResourceLimitExceededError";
}

/** What has to do with files: those of a codebase, and those that a sandbox sees. */
export class CodebaseError extends SandboxError {
  override readonly name: string = "CodebaseError";
}

export class CodebaseNotFoundError extends CodebaseError {
  override readonly name: string = "CodebaseNotFoundError";
}

/** Not there, or hidden by the rules: the two look the same from inside a sandbox. */
export class FileNotFoundError extends CodebaseError {
  override readonly name: string = "FileNotFoundError";
}

/** Somebody else changed the codebase first. */
export class VersionConflictError extends CodebaseError {
  override readonly name: string = "VersionConflictError";
}

/** What was to be uploaded cannot be read, or changed meanwhile. */
export class UploadError extends CodebaseError {
  override readonly name: string = "UploadError";
  /** What could not be read, if that is the reason: paths relative to the directory. */
  readonly unreadable: readonly string[];

  constructor(message: string, options: SandboxErrorOptions & { readonly unreadable?: readonly string[] }) {
    super(message, options);
    this.unreadable = options.unreadable ?? [];
  }
}

/** A command ended otherwise than `check` wants it to. */
export class CommandError extends SandboxError {
  override readonly name: string = "CommandError";
  /** All that is known of it, with what it printed. */
  readonly result: RunResult;

  constructor(message: string, options: SandboxErrorOptions & { readonly result?: RunResult }) {
    super(message, options);
    this.result = options.result ?? UNKNOWN_RESULT;
  }
}

/** Its time was up. */
export class CommandTimeoutError extends CommandError {
  override readonly name: string = "CommandTimeoutError";
}

/** It ended with another exit code than 0. */
export class CommandExecutionError extends CommandError {
  override readonly name: string = "CommandExecutionError";
}

export class SessionError extends SandboxError {
  override readonly name: string = "SessionError";
}

export class SessionNotFoundError extends SessionError {
  override readonly name: string = "SessionNotFoundError";
}

/** Its shell has ended. */
export class SessionClosedError extends SessionError {
  override readonly name: string = "SessionClosedError";
}

/** Nothing accepts connections at a port of the sandbox. */
export class PortClosedError extends SandboxError {
  override readonly name: string = "PortClosedError";
}

/** There is none with this number or tag; it has ended, or has not what the call needs; or it was read too slowly. */
export class ProcessError extends SandboxError {
  override readonly name: string = "ProcessError";
}

/** A timeout of which the server told nothing but that it was one. */
const UNKNOWN_RESULT: RunResult = {
  command: "",
  success: false,
  exitCode: 137,
  signal: "SIGKILL",
  timedOut: true,
  outOfMemory: false,
  durationMs: 0,
  sessionClosed: false,
  syncedVersion: 0,
  syncProblems: [],
  stdout: "",
  stderr: "",
  stdoutBytes: new Uint8Array(),
  stderrBytes: new Uint8Array(),
  truncated: true,
};

/** The class of each error that a server can tell of. */
export const ERROR_CLASSES: Readonly<
  Record<ErrorCode, new (message: string, options: SandboxErrorOptions) => SandboxError>
> = {
  INVALID_ARGUMENT: InvalidConfigurationError,
  UNAUTHENTICATED: AuthenticationError,
  ROLE_FORBIDS: PermissionDeniedError,
  CODEBASE_NOT_FOUND: CodebaseNotFoundError,
  CODEBASE_IN_USE: CodebaseError,
  CODEBASE_IS_LOCAL: CodebaseError,
  FILE_NOT_FOUND: FileNotFoundError,
  VERSION_NOT_FOUND: CodebaseError,
  VERSION_CONFLICT: VersionConflictError,
  CONTENT_MISSING: UploadError,
  UPLOAD_MISMATCH: UploadError,
  SANDBOX_NOT_FOUND: SandboxNotFoundError,
  SANDBOX_ALREADY_RUNNING: SandboxError,
  SANDBOX_NOT_RUNNING: SandboxNotRunningError,
  SANDBOX_PAUSED: SandboxNotRunningError,
  SANDBOX_FAILED: SandboxNotRunningError,
  SYNC_REFUSED: SandboxError,
  SESSION_NOT_FOUND: SessionNotFoundError,
  SESSION_CLOSED: SessionClosedError,
  CONTEXT_NOT_FOUND: SandboxError,
  PORT_CLOSED: PortClosedError,
  HOME_NOT_FOUND: SandboxError,
  HOME_IN_USE: SandboxError,
  SNAPSHOT_NOT_FOUND: SandboxError,
  SNAPSHOT_REFUSED: SandboxError,
  SECRET_NOT_FOUND: SandboxError,
  SEALING_KEY_MISSING: SandboxError,
  PROCESS_NOT_FOUND: ProcessError,
  PROCESS_UNSUITABLE: ProcessError,
  READER_TOO_SLOW: ProcessError,
  KEY_NOT_FOUND: SandboxError,
  COMMAND_TIMEOUT: CommandTimeoutError,
  WORKDIR_UNUSABLE: InvalidConfigurationError,
  PROGRAM_NOT_FOUND: InvalidConfigurationError,
  RUNTIME_UNAVAILABLE: RuntimeUnavailableError,
  IMAGE_NOT_FOUND: RuntimeUnavailableError,
  FILE_PERMISSION_DENIED: PermissionDeniedError,
  FILE_EXISTS: CodebaseError,
  FILE_WRONG_KIND: CodebaseError,
  LIMIT_EXCEEDED: ResourceLimitExceededError,
  RATE_LIMITED: ResourceLimitExceededError,
  RESOURCES_EXHAUSTED: ResourceLimitExceededError,
  DATABASE_UNAVAILABLE: ConnectionError,
  SHUTTING_DOWN: ConnectionError,
  CANCELLED: SandboxError,
  INTERNAL: SandboxError,
};
