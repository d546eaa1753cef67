import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { ERROR_DOMAIN, ERRORS, STATUS_NUMBERS } from "@agentfense/protocol";
import { ErrorInfoSchema, RetryInfoSchema } from "@agentfense/protocol/error-details";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type Code, ConnectError } from "@connectrpc/connect";
import { clipText } from "../../runtime/clip-text.ts";
import type { Log } from "../../runtime/log.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { durationMessage } from "./messages/fields.ts";

/** Where an error was met: what it takes to tell the caller's own doing from ours. */
export interface ErrorPlace {
  readonly log: Log;
  /** "sandbox.v1.SandboxService.Exec" */
  readonly method?: string;
  /** The call's own signal: an abort that it asked for is no defect. */
  readonly signal?: AbortSignal;
}

/** A message that travels with an error, beside its ErrorInfo. */
export interface ErrorDetail<Desc extends DescMessage = DescMessage> {
  readonly desc: Desc;
  readonly value: MessageInitShape<Desc>;
}

// An error of gRPC travels in HTTP trailers, its text twice (percent-encoded, and in base64 with the details). Clients
// refuse more than 8 KiB of them and report that instead of the error, so texts that quote the request are cut.
const MESSAGE_BYTES = 1024;
const METADATA_BYTES = 1536;

/** The error a caller sees, for any that was thrown. What is not meant for callers goes to the log under a reference. */
export function toConnectError(error: unknown, place: ErrorPlace): ConnectError {
  if (error instanceof ConnectError) return error;
  const abort = abortOf(error, place.signal);
  if (abort !== undefined) return abort;
  if (error instanceof RuntimeError) {
    if (error.code !== "INTERNAL") return fromRuntimeError(error);
    return fromRuntimeError(error, { reference: logged(error, place) });
  }
  const reference = logged(error, place);
  return fromRuntimeError(new RuntimeError("INTERNAL", `internal error (reference ${reference})`), { reference });
}

/** An error of the registry with its ErrorInfo, and with what else is to be said. */
export function fromRuntimeError(
  error: RuntimeError,
  facts: Readonly<Record<string, string>> = {},
  more: readonly ErrorDetail[] = [],
): ConnectError {
  const hint: Record<string, string> = error.hint === undefined ? {} : { hint: error.hint };
  const info: ErrorDetail<typeof ErrorInfoSchema> = {
    desc: ErrorInfoSchema,
    value: {
      reason: error.code,
      domain: ERROR_DOMAIN,
      metadata: clippedMetadata({ ...error.details, ...hint, ...facts }),
    },
  };
  return new ConnectError(
    clipText(error.message, MESSAGE_BYTES),
    // The numbers of Connect's codes are those of gRPC.
    STATUS_NUMBERS[ERRORS[error.code].status] as Code,
    undefined,
    [info, ...retryInfo(error), ...more],
    error,
  );
}

function retryInfo(error: RuntimeError): ErrorDetail<typeof RetryInfoSchema>[] {
  const delayMs = Number(error.details.retry_after_ms);
  if (error.code !== "RATE_LIMITED" || !(delayMs >= 0)) return [];
  return [{ desc: RetryInfoSchema, value: { retryDelay: durationMessage(delayMs) } }];
}

/** The caller went away, its deadline passed, or the server shuts down: the signal knows which. */
function abortOf(error: unknown, signal: AbortSignal | undefined): ConnectError | undefined {
  if (signal?.aborted !== true || !isAbort(error, signal)) return undefined;
  if (signal.reason instanceof ConnectError) return signal.reason;
  return fromRuntimeError(new RuntimeError("CANCELLED", "the call was cancelled", { cause: error }));
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  if (error === signal.reason) return true;
  if (error instanceof RuntimeError) return error.code === "CANCELLED";
  return error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError");
}

function logged(error: unknown, place: ErrorPlace): string {
  const reference = randomBytes(4).toString("hex");
  place.log({
    level: "error",
    message: `${place.method ?? "a request"} failed (reference ${reference})`,
    // With its stack and causes: for the operator, never for callers.
    error: inspect(error, { depth: 4 }),
  });
  return reference;
}

function clippedMetadata(metadata: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(metadata);
  const room = Math.floor(METADATA_BYTES / Math.max(entries.length, 1));
  return Object.fromEntries(entries.map(([name, value]) => [name, clipText(value, Math.max(room - name.length, 1))]));
}
