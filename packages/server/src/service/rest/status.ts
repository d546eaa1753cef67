import { httpStatusOf, STATUS_NUMBERS } from "@agentfense/protocol";
import { RetryInfoSchema } from "@agentfense/protocol/error-details";
import { create, fromBinary, type JsonValue, type Registry } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { TooLarge } from "./errors.ts";
import { messageJson } from "./response-json.ts";

/** `google.rpc.Status` as JSON. */
export interface StatusBody {
  readonly code: number;
  readonly message: string;
  readonly details: readonly JsonValue[];
}

export interface Failure {
  readonly httpStatus: number;
  readonly body: StatusBody;
  readonly headers: Readonly<Record<string, string>>;
  /** A defect of ours; the caller is told nothing of it, the log everything. */
  readonly defect: boolean;
}

export const METHOD_NOT_ALLOWED: StatusBody = {
  code: STATUS_NUMBERS.UNIMPLEMENTED,
  message: "Method Not Allowed",
  details: [],
};

/** What a client is told about whatever was thrown. Only errors of calls speak for themselves. */
export function failureOf(error: unknown, registry: Registry): Failure {
  const status = error instanceof TooLarge ? error.status : error;
  if (!(status instanceof ConnectError)) {
    return {
      httpStatus: 500,
      body: { code: STATUS_NUMBERS.INTERNAL, message: "internal error", details: [] },
      headers: {},
      defect: true,
    };
  }
  return {
    httpStatus: error instanceof TooLarge ? 413 : httpStatusOf(status.code),
    body: {
      code: status.code,
      message: status.rawMessage,
      details: status.details.map((detail) => detailJson(detail, registry)),
    },
    headers: {
      ...(status.code === Code.Unauthenticated ? { "WWW-Authenticate": "Bearer" } : {}),
      ...retryAfter(status),
    },
    defect: false,
  };
}

/** A detail as the JSON of an Any. A type that no file of ours declares keeps its bytes. */
function detailJson(detail: ConnectError["details"][number], registry: Registry): JsonValue {
  if ("desc" in detail) {
    const message = messageJson(detail.desc, create(detail.desc, detail.value), registry);
    return { "@type": `type.googleapis.com/${detail.desc.typeName}`, ...(message as object) };
  }
  const typeUrl = `type.googleapis.com/${detail.type}`;
  const desc = registry.getMessage(detail.type);
  if (desc !== undefined) {
    try {
      const message = messageJson(desc, fromBinary(desc, detail.value), registry);
      return { "@type": typeUrl, ...(message as object) };
    } catch {
      // Not what it says it is; its bytes are all there is to tell.
    }
  }
  return { "@type": typeUrl, value: Buffer.from(detail.value).toString("base64") };
}

function retryAfter(status: ConnectError): Readonly<Record<string, string>> {
  const delay = status.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return delay === undefined ? {} : { "Retry-After": String(Number(delay.seconds) + (delay.nanos > 0 ? 1 : 0)) };
}
