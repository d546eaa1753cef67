import type { Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { bodyChunks } from "./body.ts";
import type { Call } from "./call.ts";
import { answerClientStream } from "./client-stream.ts";
import { invalidArgument, TooLarge } from "./errors.ts";
import { parseJson } from "./json-text.ts";
import { childRecord, emptyRecord, type JsonRecord, normalMessage, readMessage } from "./request-json.ts";
import { parameterFields } from "./request-message.ts";

type Lines = Extract<Call["route"]["exchange"], { kind: "lines" }>;

/** A request's body as the messages of a client stream, a line of JSON each. The path's fields go into the first one. */
export async function answerLines(call: Call, exchange: Lines): Promise<Response> {
  const fromPath = parameterFields(call);
  const { opening } = exchange;
  const { input } = exchange.method;

  async function* messages(signal: AbortSignal): AsyncGenerator<Message> {
    let first = true;
    for await (const { number, bytes } of lines(bodyChunks(call.request, call.limits, signal), call.limits.bodyBytes)) {
      const normal = lineFields(number, () => {
        const json = parseJson(bytes);
        return json === undefined ? undefined : normalMessage(input, json, "");
      });
      if (normal !== undefined) {
        yield lineFields(number, () => readMessage(input, first ? openWith(normal) : normal));
        first = false;
      }
    }
    if (first) {
      yield readMessage(input, openWith(emptyRecord()));
    }
  }

  function openWith(normal: JsonRecord): JsonRecord {
    Object.assign(childRecord(normal, opening.jsonName), fromPath);
    return normal;
  }

  return answerClientStream(call, exchange.method, messages);
}

/** Says in which line the mistake is. */
function lineFields<T>(number: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ConnectError ? invalidArgument(`line ${number}: ${error.rawMessage}`) : error;
  }
}

const NEWLINE = 0x0a;

async function* lines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<{ readonly number: number; readonly bytes: Uint8Array }> {
  let parts: Uint8Array[] = [];
  let size = 0;
  let number = 1;
  const add = (part: Uint8Array) => {
    size += part.byteLength;
    if (size > maxBytes) {
      throw new TooLarge(`line ${number} has more than the ${maxBytes} bytes that are accepted`);
    }
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
  if (size > 0) {
    yield { number, bytes: Buffer.concat(parts, size) };
  }
}
