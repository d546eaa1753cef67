import type { Http2ServerRequest } from "node:http2";
import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { parseTimeout, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { LONGEST_TIMER_MS } from "../../runtime/waiting.ts";
import type { OneAnswerMethod, OneAnswerMethods } from "../rpc/one-answer.ts";
import { headerSource } from "./authentication.ts";
import { isCutShort, type NodeRequest, type NodeResponse, sendHead } from "./listener.ts";

/** A flag and the length of the message, big-endian, before it. */
const PREFIX_BYTES = 5;
const PLAIN = /^application\/grpc(?:\+proto)?$/i;

/** A call as nearly all clients of gRPC make it; the others are Connect's. */
export function isPlainGrpc(request: NodeRequest): request is Http2ServerRequest {
  const { "content-type": type = "", "grpc-encoding": encoding = "identity" } = request.headers;
  return "stream" in request && request.method === "POST" && PLAIN.test(type) && encoding === "identity";
}

/** Answers a call of a method with one answer, whatever becomes of it. */
export async function answerGrpc(
  request: Http2ServerRequest,
  response: NodeResponse,
  methods: OneAnswerMethods,
  method: OneAnswerMethod,
): Promise<void> {
  const call = new AbortController();
  const leave = (): void => call.abort(new ConnectError("the caller is gone", Code.Canceled));
  request.once("close", leave);
  const timeout = parseTimeout(String(request.headers["grpc-timeout"] ?? "") || null, Number.MAX_SAFE_INTEGER);
  const expire = (): void => call.abort(new ConnectError("the operation timed out", Code.DeadlineExceeded));
  const timer =
    timeout.timeoutMs === undefined ? undefined : setTimeout(expire, Math.min(timeout.timeoutMs, LONGEST_TIMER_MS));
  let answer: Buffer | undefined;
  let failure: ConnectError | undefined;
  try {
    if (timeout.error !== undefined) throw timeout.error;
    const { signal } = call;
    const context = {
      method: method.desc,
      values: createContextValues(),
      signal,
      protocolName: "grpc",
      requestHeader: headerSource(request.headers),
    };
    answer = enveloped(
      method.desc.methodKind === "unary"
        ? await methods.call(method, context, (mostBytes) => onlyMessage(request, mostBytes, signal))
        : await methods.collect(method, context, (mostBytes) => messagesOf(request, mostBytes)),
    );
  } catch (error) {
    failure = error instanceof ConnectError ? error : new ConnectError("internal error", Code.Internal);
  } finally {
    clearTimeout(timer);
    request.off("close", leave);
    call.abort("the call is over");
  }
  sendHead(response, 200, { "content-type": "application/grpc+proto" });
  response.addTrailers(failure === undefined ? { "grpc-status": "0" } : statusOf(failure));
  if (answer === undefined) response.end();
  else response.end(answer);
}

function enveloped(message: Uint8Array): Buffer {
  const envelope = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  envelope[0] = 0;
  envelope.writeUInt32BE(message.length, 1);
  envelope.set(message, PREFIX_BYTES);
  return envelope;
}

/** The message of a request that has exactly one; what is too large is refused before all of it is there. */
function onlyMessage(request: Http2ServerRequest, mostBytes: number, signal: AbortSignal): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let length = 0;
  const take = (chunk: Buffer): void => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > PREFIX_BYTES + mostBytes) reject(tooLarge(mostBytes));
  };
  const end = (): void => {
    try {
      if (isCutShort(request)) throw new ConnectError("the request broke off", Code.Canceled);
      resolve(unwrapped(Buffer.concat(chunks, length), mostBytes));
    } catch (error) {
      reject(error);
    }
  };
  const stop = (): void => reject(signal.reason);
  request.on("data", take);
  request.once("end", end);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  return promise.finally(() => {
    request.off("data", take);
    request.off("end", end);
    signal.removeEventListener("abort", stop);
  });
}

/** The messages of a request as they come. Whoever wants no more of them leaves the request as it is: its answer goes the same way. */
async function* messagesOf(request: Http2ServerRequest, mostBytes: number): AsyncGenerator<Uint8Array> {
  let chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length < PREFIX_BYTES) continue;
    // Only a prefix that came in parts is put together before its message is there: nothing is copied again for every part.
    if (chunks[0]!.length < PREFIX_BYTES) chunks = [Buffer.concat(chunks, length)];
    if (length < messageEnd(chunks[0]!, mostBytes)) continue;
    let rest = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length);
    while (rest.length >= PREFIX_BYTES) {
      const end = messageEnd(rest, mostBytes);
      if (rest.length < end) break;
      yield rest.subarray(PREFIX_BYTES, end);
      rest = rest.subarray(end);
    }
    chunks = rest.length === 0 ? [] : [rest];
    length = rest.length;
  }
  if (isCutShort(request)) throw new ConnectError("the request broke off", Code.Canceled);
  if (length > 0) throw incomplete();
}

/** Where the message that begins here ends, by its prefix. */
function messageEnd(bytes: Buffer, mostBytes: number): number {
  if (bytes[0] !== 0) throw unexpectedlyCompressed();
  const messageBytes = bytes.readUInt32BE(1);
  if (messageBytes > mostBytes) throw tooLarge(mostBytes);
  return PREFIX_BYTES + messageBytes;
}

function unwrapped(body: Buffer, mostBytes: number): Buffer {
  if (body.length === 0)
    throw new ConnectError("protocol error: missing input message for unary method", Code.Unimplemented);
  if (body.length < PREFIX_BYTES) throw incomplete();
  const end = messageEnd(body, mostBytes);
  if (body.length < end) throw incomplete();
  if (body.length > end) {
    throw new ConnectError("protocol error: received extra input message for unary method", Code.Unimplemented);
  }
  return body.subarray(PREFIX_BYTES);
}

function incomplete(): ConnectError {
  return new ConnectError("protocol error: incomplete envelope", Code.InvalidArgument);
}

function unexpectedlyCompressed(): ConnectError {
  return new ConnectError("protocol error: a compressed message without grpc-encoding", Code.Internal);
}

function tooLarge(mostBytes: number): ConnectError {
  return new ConnectError(`the message is larger than ${mostBytes} bytes`, Code.ResourceExhausted);
}

function statusOf(error: ConnectError): Record<string, string> {
  return Object.fromEntries(withPlainMessage(setTrailerStatus(new Headers(), error)));
}

const GRPC_MESSAGE = "grpc-message";

/**
 * A status with its text encoded as gRPC has it: what is not printable ASCII, and "%". The library encodes all that a URL would,
 * and clients that decode with decodeURI then show "file not found%3A a.txt".
 */
export function withPlainMessage(trailer: Headers): Headers {
  const encoded = trailer.get(GRPC_MESSAGE);
  if (encoded === null) return trailer;
  const plain = new Headers(trailer);
  plain.set(GRPC_MESSAGE, encodeMessage(decodeURIComponent(encoded)));
  return plain;
}

function encodeMessage(text: string): string {
  // Spaces at the ends would not survive a header.
  return text.replace(/[^ -~]+|%|^ | $/gu, encodeURIComponent);
}
