import { create, type Message } from "@bufbuild/protobuf";
import { bodyChunks } from "./body.ts";
import type { Call } from "./call.ts";
import { answerClientStream } from "./client-stream.ts";
import { readMessage } from "./request-json.ts";
import { parameterFields } from "./request-message.ts";

type Upload = Extract<Call["route"]["exchange"], { kind: "upload" }>;

const MAX_CHUNK_BYTES = 256 * 1024;

/** A request's body as the bytes of a client stream, after a first message with what path and query say. */
export async function answerUpload(call: Call, exchange: Upload): Promise<Response> {
  const metadata = readMessage(exchange.metadata.message, parameterFields(call));
  const { input } = exchange.method;
  const oneof = exchange.data.oneof?.localName ?? "";
  const message = (field: { localName: string }, value: unknown): Message =>
    create(input, { [oneof]: { case: field.localName, value } });

  async function* messages(signal: AbortSignal): AsyncGenerator<Message> {
    yield message(exchange.metadata, metadata);
    for await (const chunk of bodyChunks(call.request, call.limits, signal)) {
      for (let start = 0; start < chunk.byteLength; start += MAX_CHUNK_BYTES) {
        yield message(exchange.data, chunk.subarray(start, start + MAX_CHUNK_BYTES));
      }
    }
  }
  return answerClientStream(call, exchange.method, messages);
}
