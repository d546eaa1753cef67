import { SandboxError, type SandboxErrorCode } from "@agentfense/sdk";
import { BodyRefusal } from "../body.ts";
import { Refusal } from "./envelope.ts";

const STATUSES: Readonly<Partial<Record<SandboxErrorCode, number>>> = {
  INVALID_ARGUMENT: 400,
  WORKDIR_UNUSABLE: 400,
  PROGRAM_NOT_FOUND: 400,
  UNAUTHENTICATED: 401,
  ROLE_FORBIDS: 403,
  SANDBOX_NOT_FOUND: 404,
  SESSION_NOT_FOUND: 404,
  SESSION_CLOSED: 404,
  SANDBOX_NOT_RUNNING: 409,
  SANDBOX_PAUSED: 409,
  SANDBOX_FAILED: 409,
  LIMIT_EXCEEDED: 429,
  RATE_LIMITED: 429,
  RESOURCES_EXHAUSTED: 429,
  SHUTTING_DOWN: 503,
  RUNTIME_UNAVAILABLE: 503,
};

/** What a caller is told of a failure. What is not meant for callers is not told. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof BodyRefusal) return new Refusal(error.message, { status: error.status });
  if (!(error instanceof SandboxError)) return new Refusal("something went wrong inside the server", { status: 500 });
  const { message, hint, code } = error;
  return new Refusal(message, { status: STATUSES[code] ?? 500, hint });
}
