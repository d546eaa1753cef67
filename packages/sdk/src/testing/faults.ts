import { ERROR_DOMAIN, ERRORS, type ErrorCode, STATUS_NUMBERS } from "@agentfense/protocol";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type Code, ConnectError } from "@connectrpc/connect";

interface FaultOptions {
  /** Facts for programs. */
  readonly details?: Readonly<Record<string, string>>;
  /** What to do about it, for a person. */
  readonly hint?: string;
  /** A message that travels along. */
  readonly detail?: { readonly desc: DescMessage; readonly value: MessageInitShape<DescMessage> };
}

/** A call that is refused, by a code of the registry: it travels as the server's errors do. */
export class Fault extends Error {
  readonly code: ErrorCode;
  readonly options: FaultOptions;

  constructor(code: ErrorCode, message: string, options: FaultOptions = {}) {
    super(message);
    this.name = "Fault";
    this.code = code;
    this.options = options;
  }
}

export function invalid(message: string, details: Readonly<Record<string, string>> = {}): Fault {
  return new Fault("INVALID_ARGUMENT", message, { details });
}

export function brokenOff(): Fault {
  return new Fault("CANCELLED", "the upload broke off: its end was announced and did not come");
}

export function cancelled(): Fault {
  return new Fault("CANCELLED", "the call was cancelled");
}

/** What the caller sees of anything that was thrown. */
export function toConnectError(error: unknown, signal: AbortSignal): ConnectError {
  if (error instanceof ConnectError) return error;
  if (signal.aborted && signal.reason instanceof ConnectError) return signal.reason;
  if (error instanceof Fault) return connectErrorOf(error);
  if (signal.aborted) return connectErrorOf(cancelled());
  const message = error instanceof Error ? error.message : String(error);
  const fault = new Fault("INTERNAL", `the mock engine failed: ${message}`);
  fault.cause = error;
  return connectErrorOf(fault);
}

function connectErrorOf(fault: Fault): ConnectError {
  const { details = {}, hint, detail } = fault.options;
  const info: MessageInitShape<typeof ErrorInfoSchema> = {
    reason: fault.code,
    domain: ERROR_DOMAIN,
    metadata: { ...details, ...(hint === undefined ? {} : { hint }) },
  };
  return new ConnectError(
    fault.message,
    // The numbers of Connect's codes are those of gRPC.
    STATUS_NUMBERS[ERRORS[fault.code].status] as Code,
    undefined,
    [{ desc: ErrorInfoSchema, value: info }, ...(detail === undefined ? [] : [detail])],
    fault,
  );
}
