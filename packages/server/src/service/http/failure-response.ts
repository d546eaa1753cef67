import { file_google_rpc_error_details } from "@agentfense/protocol/error-details";
import { createRegistry } from "@bufbuild/protobuf";
import { jsonResponse } from "../rest/responses.ts";
import { failureOf } from "../rest/status.ts";
import { type ErrorPlace, toConnectError } from "../rpc/errors.ts";

const ERROR_TYPES = createRegistry(file_google_rpc_error_details);

/** What a client over plain HTTP is told of an error that was met before or beside a call. */
export function failureResponse(error: unknown, place: ErrorPlace): Response {
  const failure = failureOf(toConnectError(error, place), ERROR_TYPES);
  return jsonResponse(failure.httpStatus, failure.body, failure.headers);
}
