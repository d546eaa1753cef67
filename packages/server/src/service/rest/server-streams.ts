import type { DescMethodServerStreaming, JsonValue, Message } from "@bufbuild/protobuf";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { unless } from "../../runtime/waiting.ts";
import { toConnectError } from "../rpc/connect-error.ts";
import { invalid } from "../rpc/messages/fields.ts";
import { failureBody, type StatusBody } from "./failure-response.ts";
import { fieldNamed } from "./fields.ts";
import type { Call, ExchangeOf } from "./handler.ts";
import { requestMessage } from "./request-message.ts";
import { messageJson, streamResponse } from "./responses.ts";

/** The answers of a stream that is under way. */
interface OpenStream {
  next(): Promise<IteratorResult<Message>>;
  /** Aborts the method's signal, by which it lets go of what it holds wherever it is. */
  end(): void;
}

/** Begins a call. The transport says nothing before the first message, which may take for ever: only `next` waits. */
function openStream(call: Call, method: DescMethodServerStreaming, input: Message): OpenStream {
  const stop = new AbortController();
  const signal = AbortSignal.any([call.request.signal, stop.signal]);
  const begun = call.transport
    .stream(method, signal, undefined, call.headers, createAsyncIterable([input]))
    .then((response) => response.message[Symbol.asyncIterator]());
  return { next: async () => (await begun).next(), end: () => stop.abort() };
}

/**
 * The bytes of a server stream as the body. What goes wrong before the first byte is thrown; later there is no way to say it but to
 * cut the connection.
 */
export async function answerDownload(call: Call, { method, data, mediaType }: ExchangeOf<"download">) {
  const messages = openStream(call, method, await requestMessage(call));
  const nextBytes = async (): Promise<Uint8Array | undefined> => {
    for (let next = await messages.next(); next.done !== true; next = await messages.next()) {
      const bytes = (next.value as unknown as Record<string, Uint8Array>)[data.localName];
      if (bytes !== undefined && bytes.byteLength > 0) return bytes;
    }
    return undefined;
  };
  const first = await nextBytes();
  async function* pieces(): AsyncGenerator<Uint8Array> {
    try {
      for (let bytes = first; bytes !== undefined; bytes = await nextBytes()) yield bytes;
    } catch (error) {
      throw toConnectError(error, call.place);
    }
  }
  const headers = { "Content-Disposition": "attachment" };
  return streamResponse(mediaType, pieces(), { cancel: () => messages.end(), headers });
}

/** So long a refusal may take and still become a status; then the stream is open and it becomes an event. */
const REFUSAL_MS = 500;

/**
 * `id` is the message's `sequence`, when it has one; a client that comes back sends it as Last-Event-ID.
 * An `end` event tells a stream that is complete from one that was cut.
 */
const SERVER_SENT_EVENTS = {
  mediaType: "text/event-stream",
  message(json: JsonValue): string {
    const sequence = (json as { sequence?: JsonValue }).sequence;
    const id = typeof sequence === "string" ? `id: ${sequence}\n` : "";
    return `${id}event: message\ndata: ${JSON.stringify(json)}\n\n`;
  },
  error: (status: StatusBody) => `event: error\ndata: ${JSON.stringify(status)}\n\n`,
  opening: ": open\n\n",
  heartbeat: ": still here\n\n",
  ending: "event: end\ndata: {}\n\n",
};

/** A message a line; an error is the last line, as the only key `error`. An empty line says that the stream is alive. */
const JSON_LINES: typeof SERVER_SENT_EVENTS = {
  mediaType: "application/x-ndjson",
  message: (json) => `${JSON.stringify(json)}\n`,
  error: (status) => `${JSON.stringify({ error: status })}\n`,
  opening: "",
  heartbeat: "\n",
  ending: "",
};

/** The messages of a server stream one by one. */
export async function answerEvents(call: Call, { method }: ExchangeOf<"events">): Promise<Response> {
  const format = (call.request.headers.get("accept") ?? "").includes(JSON_LINES.mediaType)
    ? JSON_LINES
    : SERVER_SENT_EVENTS;
  const messages = openStream(call, method, continueAfter(call, await requestMessage(call)));
  const nextOf = (): Promise<IteratorResult<Message>> => {
    const next = messages.next();
    next.catch(() => {}); // a rejection that nobody awaits yet is no crash
    return next;
  };
  let next = nextOf();
  await unless(next, { waitMs: REFUSAL_MS, late: () => {} });

  async function* texts(): AsyncGenerator<string> {
    yield format.opening;
    try {
      for (;;) {
        const result = await unless(next, { waitMs: call.heartbeatMs, late: () => undefined });
        if (result?.done === true) break;
        if (result !== undefined) next = nextOf();
        yield result === undefined ? format.heartbeat : format.message(messageJson(method.output, result.value));
      }
      yield format.ending;
    } catch (error) {
      yield format.error(failureBody(toConnectError(error, call.place)));
    }
  }
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for await (const text of texts()) if (text !== "") yield Buffer.from(text);
  }
  return streamResponse(format.mediaType, pieces(), { cancel: () => messages.end() });
}

/** Last-Event-ID wins over the query: a browser that reconnects repeats the address it began with. */
function continueAfter(call: Call, input: Message): Message {
  const lastId = call.request.headers.get("last-event-id");
  const field = fieldNamed(call.route.exchange.method.input, "after_sequence");
  if (lastId === null || lastId === "" || field === undefined) {
    return input;
  }
  if (!/^[0-9]{1,18}$/.test(lastId)) {
    throw invalid("Last-Event-ID must be the id of an event");
  }
  return Object.assign(input, { [field.localName]: BigInt(lastId) });
}
