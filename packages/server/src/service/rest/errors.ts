import { ERROR_DOMAIN, type ErrorCode } from "@agentfense/protocol";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { Code, ConnectError } from "@connectrpc/connect";

function refusal(code: Code, reason: ErrorCode, message: string): ConnectError {
  return new ConnectError(message, code, undefined, [
    { desc: ErrorInfoSchema, value: { reason, domain: ERROR_DOMAIN } },
  ]);
}

/** The request cannot be right; `message` begins with the field it is about, when it is about one. */
export function invalidArgument(message: string): ConnectError {
  return refusal(Code.InvalidArgument, "INVALID_ARGUMENT", message);
}

/** A body or a line of it beyond the limit. REST answers it with 413, since 429 invites to try again. */
export class TooLarge extends Error {
  readonly status: ConnectError;

  constructor(message: string) {
    super(message);
    this.name = "TooLarge";
    this.status = refusal(Code.ResourceExhausted, "LIMIT_EXCEEDED", message);
  }
}

export function bodyStalled(idleMs: number): ConnectError {
  return refusal(Code.Canceled, "CANCELLED", `no data arrived for ${idleMs / 1000} seconds; the request was given up`);
}

export function bodyCut(): ConnectError {
  return refusal(Code.Canceled, "CANCELLED", "the request ended before its body was complete");
}
