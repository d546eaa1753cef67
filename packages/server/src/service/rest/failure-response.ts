import { httpStatusOf, STATUS_NUMBERS, type StatusName } from "@agentfense/protocol";
import { file_google_rpc_error_details, RetryInfoSchema } from "@agentfense/protocol/error-details";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { create, createRegistry, type DescMessage, fromBinary, type JsonValue, type Message } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { type ErrorPlace, toConnectError } from "../rpc/connect-error.ts";
import { jsonResponse, messageJson } from "./responses.ts";

/** `google.rpc.Status` as JSON: what every client over plain HTTP is told of an error. */
export interface StatusBody {
  readonly code: number;
  readonly message: string;
  readonly details: readonly JsonValue[];
}

/** The messages that an error can have in its details. */
const DETAIL_TYPES = createRegistry(file_google_rpc_error_details, SandboxService.file);

/** A body or a line of it beyond the limit. REST answers it with 413, since 429 invites to try again. */
export class TooLarge extends RuntimeError {
  constructor(message: string) {
    super("LIMIT_EXCEEDED", message);
  }
}

/** For what is refused before there is more to say about it. */
export function statusBody(status: StatusName, message: string): StatusBody {
  return { code: STATUS_NUMBERS[status], message, details: [] };
}

/** What a client over plain HTTP is told about whatever was thrown; the log has what is not meant for clients. */
export function failureResponse(error: unknown, place: ErrorPlace): Response {
  const status = toConnectError(error, place);
  return jsonResponse(error instanceof TooLarge ? 413 : httpStatusOf(status.code), failureBody(status), {
    ...(status.code === Code.Unauthenticated ? { "WWW-Authenticate": "Bearer" } : {}),
    ...retryAfter(status),
  });
}

export function failureBody(status: ConnectError): StatusBody {
  return { code: status.code, message: status.rawMessage, details: status.details.map(detailJson) };
}

/** A detail as the JSON of an Any. A type that no file of ours declares keeps its bytes. */
function detailJson(detail: ConnectError["details"][number]): JsonValue {
  const told = (desc: DescMessage, message: Message): JsonValue => {
    return { "@type": `type.googleapis.com/${desc.typeName}`, ...(messageJson(desc, message) as object) };
  };
  if ("desc" in detail) return told(detail.desc, create(detail.desc, detail.value));
  const desc = DETAIL_TYPES.getMessage(detail.type);
  try {
    if (desc !== undefined) return told(desc, fromBinary(desc, detail.value));
  } catch {
    // Not what it says it is; its bytes are all there is to tell.
  }
  return { "@type": `type.googleapis.com/${detail.type}`, value: Buffer.from(detail.value).toString("base64") };
}

function retryAfter(status: ConnectError): Readonly<Record<string, string>> {
  const delay = status.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return delay === undefined ? {} : { "Retry-After": String(Number(delay.seconds) + (delay.nanos > 0 ? 1 : 0)) };
}
