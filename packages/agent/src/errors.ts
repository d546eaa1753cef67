import type { FailureCode } from "./types.ts";

/** What this package throws, besides the errors of the SDK. */
export class AgentError extends Error {
  override readonly name: string = "AgentError";
  /** What may help. */
  readonly hint: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly hint?: string | undefined } = {}) {
    super(message, options);
    this.hint = options.hint;
  }
}

/** A path that is none of the workspace's. */
export class PathTraversalError extends AgentError {
  override readonly name = "PathTraversalError";
}

/** A file of the workspace cannot be read, written or removed. */
export class WorkspaceError extends AgentError {
  override readonly name = "WorkspaceError";
  readonly code: WorkspaceErrorCode;

  constructor(code: WorkspaceErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.code = code;
  }
}

export type WorkspaceErrorCode = "NOT_FOUND" | "NOT_PERMITTED" | "WRONG_KIND" | "NOT_EMPTY" | "TOO_LARGE" | "IO";

/** An executor will not, or cannot, run something. */
export class ExecutorError extends AgentError {
  override readonly name = "ExecutorError";
  readonly code: Extract<FailureCode, "REFUSED" | "UNAVAILABLE" | "INVALID_REQUEST" | "INTERNAL">;

  constructor(
    code: ExecutorError["code"],
    message: string,
    options: ErrorOptions & { readonly hint?: string | undefined } = {},
  ) {
    super(message, options);
    this.code = code;
  }
}

/** No instance became free in time, or the pool is not running. */
export class PoolError extends AgentError {
  override readonly name = "PoolError";
  readonly code: "ACQUIRE_TIMEOUT" | "NOT_RUNNING" | "CREATE_FAILED" | "NOT_ACQUIRED";

  constructor(code: PoolError["code"], message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.code = code;
  }
}

/** A browser action is not allowed or failed. */
export class BrowserError extends AgentError {
  override readonly name = "BrowserError";
  readonly code: "URL_NOT_ALLOWED" | "DENIED" | "ACTION_FAILED" | "UNAVAILABLE" | "INVALID_ACTION";

  constructor(
    code: BrowserError["code"],
    message: string,
    options: ErrorOptions & { readonly hint?: string | undefined } = {},
  ) {
    super(message, options);
    this.code = code;
  }
}
