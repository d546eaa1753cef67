import { ExecutorError, PoolError } from "../errors.ts";
import type { FailureCode } from "../types.ts";
import { RequestProblem } from "./request.ts";
import { Overtime } from "./running.ts";

/** Nothing was run, and this is why. */
export class NotRun extends Error {
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** What the caller is told of something that was thrown. What is not meant for him is in the event alone. */
export function failureOf(
  error: unknown,
  signal: AbortSignal,
): { readonly errorCode: FailureCode | "ABORTED"; readonly message: string } {
  if (signal.aborted) return { errorCode: "ABORTED", message: "it was aborted" };
  if (error instanceof RequestProblem) return { errorCode: "INVALID_REQUEST", message: error.message };
  if (error instanceof NotRun) return { errorCode: error.code, message: error.message };
  if (error instanceof Overtime) return { errorCode: "TIMEOUT", message: error.message };
  if (error instanceof PoolError) return { errorCode: "UNAVAILABLE", message: error.message };
  if (error instanceof ExecutorError) {
    const hint = error.hint === undefined ? "" : ` (${error.hint})`;
    return { errorCode: error.code, message: `${error.message}${hint}` };
  }
  return { errorCode: "INTERNAL", message: "something failed inside the manager; its event `failed` has the error" };
}
