import { create, type DescMethodClientStreaming, type Message } from "@bufbuild/protobuf";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { watched } from "../../runtime/waiting.ts";
import { invalid } from "../rpc/messages/fields.ts";
import { bodyChunks } from "./body.ts";
import { TooLarge } from "./failure-response.ts";
import type { Call, ExchangeOf } from "./handler.ts";
import { parseJson } from "./json-text.ts";
import { childRecord, emptyRecord, type JsonRecord, normalMessage, readMessage } from "./request-json.ts";
import { parameterFields } from "./request-message.ts";
import { jsonResponse, messageJson } from "./responses.ts";

const MAX_CHUNK_BYTES = 256 * 1024;

/** A request's body as the bytes of a client stream, after a first message with what path and query say. */
export async function answerUpload(call: Call, exchange: ExchangeOf<"upload">): Promise<Response> {
  const metadata = readMessage(exchange.metadata.message, parameterFields(call));
  const oneof = exchange.data.oneof?.localName ?? "";
  const message = (field: { localName: string }, value: unknown): Message =>
    create(exchange.method.input, { [oneof]: { case: field.localName, value } });

  async function* messages(): AsyncGenerator<Message> {
    yield message(exchange.metadata, metadata);
    for await (const chunk of bodyChunks(call.request, call.limits)) {
      for (let start = 0; start < chunk.byteLength; start += MAX_CHUNK_BYTES) {
        yield message(exchange.data, chunk.subarray(start, start + MAX_CHUNK_BYTES));
      }
    }
  }
  return answerClientStream(call, exchange.method, messages());
}

/** A request's body as the messages of a client stream, a line of JSON each. The path's fields go into the first one. */
export async function answerLines(call: Call, exchange: ExchangeOf<"lines">): Promise<Response> {
  const fromPath = parameterFields(call);
  const { input } = exchange.method;
  const openWith = (normal: JsonRecord): JsonRecord => {
    Object.assign(childRecord(normal, exchange.opening.jsonName), fromPath);
    return normal;
  };

  async function* messages(): AsyncGenerator<Message> {
    let first = true;
    for await (const { number, bytes } of linesOf(bodyChunks(call.request, call.limits), call.limits.bodyBytes)) {
      const message = inLine(number, () => {
        const json = parseJson(bytes);
        if (json === undefined) return undefined;
        const normal = normalMessage(input, json, "");
        return readMessage(input, first ? openWith(normal) : normal);
      });
      if (message === undefined) continue;
      yield message;
      first = false;
    }
    if (first) yield readMessage(input, openWith(emptyRecord()));
  }
  return answerClientStream(call, exchange.method, messages());
}

/**
 * Sends messages that are made from a request's body and answers with the one that comes back. What is wrong with the
 * body itself is the answer, whatever the method made of the stream's sudden end.
 */
async function answerClientStream(
  call: Call,
  method: DescMethodClientStreaming,
  messages: AsyncGenerator<Message>,
): Promise<Response> {
  const stop = new AbortController();
  const signal = AbortSignal.any([call.request.signal, stop.signal]);
  // The method must take a fault for a cut, never for the end of the stream.
  const source = watched(messages, (error) => stop.abort(error));
  try {
    const response = await call.transport.stream(method, signal, undefined, call.headers, source.items);
    let answer: Message | undefined;
    for await (const message of response.message) answer = message;
    if (answer === undefined) throw new Error(`${method.name} ended without an answer`);
    if (source.fault === undefined) return jsonResponse(200, messageJson(method.output, answer));
  } catch (error) {
    if (source.fault === undefined) throw error;
  } finally {
    // A method may answer before it has read everything; the rest of the body is then let go.
    source.items.return(undefined).catch(() => {});
  }
  throw source.fault.error;
}

/** Says in which line the mistake is. */
function inLine<T>(number: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof RuntimeError ? invalid(`line ${number}: ${error.message}`) : error;
  }
}

const NEWLINE = 0x0a;

async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<{ readonly number: number; readonly bytes: Uint8Array }> {
  let parts: Uint8Array[] = [];
  let size = 0;
  let number = 1;
  const add = (part: Uint8Array) => {
    size += part.byteLength;
    if (size > maxBytes) throw new TooLarge(`line ${number} has more than the ${maxBytes} bytes that are accepted`);
    parts.push(part);
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end));
      yield { number, bytes: Buffer.concat(parts, size) };
      parts = [];
      size = 0;
      number += 1;
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (size > 0) yield { number, bytes: Buffer.concat(parts, size) };
}
