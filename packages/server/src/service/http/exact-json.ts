import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import {
  type Compression,
  encodeEnvelope,
  envelopeDecompress,
  readAllBytes,
  transformSplitEnvelope,
  type UniversalServerRequest,
} from "@connectrpc/connect/protocol";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { exactJson } from "../rest/request-message.ts";
import { fromRuntimeError } from "../rpc/connect-error.ts";

// Connect's own reading of JSON drops a value of an enum that it does not know, rounds large numbers, and gives V8 keys that it may
// take for those of another client. So REST's reader comes first here, too, and Connect gets what that understood.

export interface ExactJsonOptions {
  readonly compressions: readonly Compression[];
  readonly readMaxBytes: number;
}

/** A request with its body as the bytes that came. */
type Call = UniversalServerRequest & { readonly body: AsyncIterable<Uint8Array> };

const UNARY = /^application\/json(?:; ?charset=utf-?8)?$/i;
const ENVELOPES = /^application\/(connect|grpc|grpc-web)\+json(?:; ?charset=utf-?8)?$/i;

/** The same request with its JSON, if it has any, in a form that can be read in one way only. Nothing is read before it is asked for. */
export function withExactJson(call: Call, method: DescMethod, options: ExactJsonOptions): UniversalServerRequest {
  if (call.method === "GET") return withExactQuery(call, method, options);
  const type = call.header.get("content-type") ?? "";
  const [, protocol] = ENVELOPES.exec(type) ?? [];
  if (protocol === undefined && !UNARY.test(type)) return call;
  const encodedAs =
    protocol === undefined ? "content-encoding" : protocol === "connect" ? "connect-content-encoding" : "grpc-encoding";
  const encoding = call.header.get(encodedAs) ?? "identity";
  const compression = options.compressions.find(({ name }) => name === encoding) ?? null;
  // Connect refuses it by its name, before it reads anything.
  if (compression === null && encoding !== "identity") return call;
  const header = new Headers(call.header);
  for (const name of [encodedAs, "content-length"]) header.delete(name);
  const read = protocol === undefined ? onlyMessage : messages;
  return { ...call, header, body: read(call, method.input, compression, options.readMaxBytes) };
}

/** A call of Connect that has its message in the query: what is in the way of reading it is told as for any other call. */
function withExactQuery(call: Call, method: DescMethod, options: ExactJsonOptions): UniversalServerRequest {
  const query = new URL(call.url).searchParams;
  const hasNoEffect = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  if (!hasNoEffect || query.get("encoding") !== "json") return call;
  const message = Buffer.from(query.get("message") ?? "", query.get("base64") === "1" ? "base64url" : "utf8");
  const header = new Headers(call.header);
  header.set("content-type", "application/json");
  header.set("content-encoding", query.get("compression") ?? "identity");
  return withExactJson({ ...call, method: "POST", header, body: only(message) }, method, options);
}

async function* only(message: Uint8Array): AsyncGenerator<Uint8Array> {
  yield message;
}

async function* onlyMessage(
  { body, header }: Call,
  input: DescMessage,
  compression: Compression | null,
  mostBytes: number,
): AsyncGenerator<Uint8Array> {
  const bytes = await readAllBytes(body, mostBytes, header.get("content-length"));
  yield exact(input, compression === null ? bytes : await compression.decompress(bytes, mostBytes));
}

async function* messages(
  { body }: Call,
  input: DescMessage,
  compression: Compression | null,
  mostBytes: number,
): AsyncGenerator<Uint8Array> {
  for await (const envelope of transformSplitEnvelope(mostBytes)(body)) {
    const { flags, data } = await envelopeDecompress(envelope, compression, mostBytes);
    yield encodeEnvelope(flags, exact(input, data));
  }
}

function exact(input: DescMessage, bytes: Uint8Array): Uint8Array {
  try {
    return exactJson(input, bytes);
  } catch (error) {
    throw error instanceof RuntimeError ? fromRuntimeError(error) : error;
  }
}
