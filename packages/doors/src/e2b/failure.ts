import { SandboxError, type SandboxErrorCode } from "@agentfense/sdk";
import { BodyRefusal } from "../body.ts";
import { statusAnswer } from "./address.ts";

/** The words of Connect for what goes wrong, with the status that each has outside of streams. */
const CODES = {
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  already_exists: 409,
  failed_precondition: 400,
  resource_exhausted: 429,
  canceled: 499,
  internal: 500,
  unimplemented: 501,
  unavailable: 503,
  deadline_exceeded: 504,
} as const;

export type FailureCode = keyof typeof CODES;

/** What a caller is told. */
export class E2bFailure extends Error {
  override readonly name = "E2bFailure";
  readonly code: FailureCode;
  /** Of an answer that is no Connect stream. */
  readonly status: number;

  constructor(code: FailureCode, message: string, { status = CODES[code] }: { readonly status?: number } = {}) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

export function notOffered(what: string): E2bFailure {
  return new E2bFailure("unimplemented", `${what} is not offered by AgentFense`);
}

/** The sandbox is none, was destroyed, or holds still: in the words that clients look for. */
export class SandboxGone extends E2bFailure {
  readonly sandboxId: string;

  constructor(sandboxId: string) {
    super("unavailable", "The sandbox was not found", { status: 502 });
    this.sandboxId = sandboxId;
  }
}

const BY_CODE: Readonly<Partial<Record<SandboxErrorCode, FailureCode>>> = {
  INVALID_ARGUMENT: "invalid_argument",
  WORKDIR_UNUSABLE: "invalid_argument",
  PROGRAM_NOT_FOUND: "invalid_argument",
  FILE_WRONG_KIND: "invalid_argument",
  UNAUTHENTICATED: "unauthenticated",
  ROLE_FORBIDS: "permission_denied",
  FILE_PERMISSION_DENIED: "permission_denied",
  SANDBOX_NOT_FOUND: "not_found",
  CODEBASE_NOT_FOUND: "not_found",
  FILE_NOT_FOUND: "not_found",
  PROCESS_NOT_FOUND: "not_found",
  FILE_EXISTS: "already_exists",
  RUNTIME_UNAVAILABLE: "failed_precondition",
  PROCESS_UNSUITABLE: "internal",
  LIMIT_EXCEEDED: "resource_exhausted",
  RATE_LIMITED: "resource_exhausted",
  RESOURCES_EXHAUSTED: "resource_exhausted",
  CANCELLED: "canceled",
};

/** What is not meant for callers is not told. */
export function failureOf(error: unknown): E2bFailure {
  if (error instanceof E2bFailure) return error;
  if (error instanceof BodyRefusal)
    return new E2bFailure("resource_exhausted", error.message, { status: error.status });
  if (!(error instanceof SandboxError)) return new E2bFailure("internal", "something went wrong inside the server");
  const { code, message, hint } = error;
  return new E2bFailure(BY_CODE[code] ?? "internal", hint === undefined ? message : `${message}: ${hint}`);
}

export function failureAnswer(failure: E2bFailure): Response {
  const { status, message } = failure;
  return statusAnswer(status, message, failure instanceof SandboxGone ? { sandboxId: failure.sandboxId } : {});
}
