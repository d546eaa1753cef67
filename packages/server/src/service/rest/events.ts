import { setTimeout as delay } from "node:timers/promises";
import type { JsonValue, Message } from "@bufbuild/protobuf";
import { type Call, type OpenStream, openStream } from "./call.ts";
import { invalidArgument } from "./errors.ts";
import { fieldNamed } from "./fields.ts";
import { requestMessage } from "./request-message.ts";
import { messageJson } from "./response-json.ts";
import { streamResponse } from "./responses.ts";
import { failureOf, type StatusBody } from "./status.ts";

type Events = Extract<Call["route"]["exchange"], { kind: "events" }>;

/** So long a refusal may take and still become a status; then the stream is open and it becomes an event. */
const REFUSAL_MS = 500;

/** How a stream of messages is written. */
interface Format {
  readonly mediaType: string;
  message(json: JsonValue): string;
  error(status: StatusBody): string;
  readonly opening: string;
  readonly heartbeat: string;
  readonly ending: string;
}

/**
 * `id` is the message's `sequence`, when it has one; a client that comes back sends it as Last-Event-ID.
 * An `end` event tells a stream that is complete from one that was cut.
 */
const SERVER_SENT_EVENTS: Format = {
  mediaType: "text/event-stream",
  message(json) {
    const sequence = (json as { sequence?: JsonValue }).sequence;
    const id = typeof sequence === "string" ? `id: ${sequence}\n` : "";
    return `${id}event: message\ndata: ${JSON.stringify(json)}\n\n`;
  },
  error: (status) => `event: error\ndata: ${JSON.stringify(status)}\n\n`,
  opening: ": open\n\n",
  heartbeat: ": still here\n\n",
  ending: "event: end\ndata: {}\n\n",
};

/** A message a line; an error is the last line, as the only key `error`. An empty line says that the stream is alive. */
const JSON_LINES: Format = {
  mediaType: "application/x-ndjson",
  message: (json) => `${JSON.stringify(json)}\n`,
  error: (status) => `${JSON.stringify({ error: status })}\n`,
  opening: "",
  heartbeat: "\n",
  ending: "",
};

/** The messages of a server stream one by one, no faster than the client reads. */
export async function answerEvents(call: Call, exchange: Events): Promise<Response> {
  const format = (call.request.headers.get("accept") ?? "").includes(JSON_LINES.mediaType)
    ? JSON_LINES
    : SERVER_SENT_EVENTS;
  const input = continueAfter(call, await requestMessage(call));
  const messages = openStream(call, exchange.method, input);
  let next = pending(messages);
  await refusal(next);

  const text = new TextEncoder();
  let opened = false;
  let over = false;
  return streamResponse(format.mediaType, {
    async pull(controller) {
      if (over) {
        controller.close();
        return;
      }
      if (!opened && format.opening !== "") {
        opened = true;
        controller.enqueue(text.encode(format.opening));
        return;
      }
      try {
        const result = await withHeartbeat(next, call.heartbeatMs);
        if (result === undefined) {
          controller.enqueue(text.encode(format.heartbeat));
        } else if (result.done === true) {
          over = true;
          finish(controller, text.encode(format.ending));
        } else {
          next = pending(messages);
          controller.enqueue(
            text.encode(format.message(messageJson(exchange.method.output, result.value, call.registry))),
          );
        }
      } catch (error) {
        over = true;
        call.reportDefect(error);
        finish(controller, text.encode(format.error(failureOf(error, call.registry).body)));
      }
    },
    cancel: () => messages.end(),
  });
}

/** A rejection that nobody awaits yet is no crash. */
function pending(messages: OpenStream): Promise<IteratorResult<Message>> {
  const next = messages.next();
  next.catch(() => {});
  return next;
}

/** Throws when the call is refused at once. */
async function refusal(next: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  try {
    await Promise.race([next, delay(REFUSAL_MS, undefined, { signal: timer.signal }).catch(() => {})]);
  } finally {
    timer.abort();
  }
}

/** undefined: nothing came for so long that the client should hear that the stream is alive. */
async function withHeartbeat<T>(next: Promise<T>, heartbeatMs: number): Promise<T | undefined> {
  const timer = new AbortController();
  try {
    return await Promise.race([next, delay(heartbeatMs, undefined, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}

function finish(controller: ReadableStreamDefaultController<Uint8Array>, last: Uint8Array): void {
  if (last.byteLength > 0) {
    controller.enqueue(last);
  }
  controller.close();
}

/** Last-Event-ID wins over the query: a browser that reconnects repeats the address it began with. */
function continueAfter(call: Call, input: Message): Message {
  const lastId = call.request.headers.get("last-event-id");
  const field = fieldNamed(call.route.exchange.method.input, "after_sequence");
  if (lastId === null || lastId === "" || field === undefined) {
    return input;
  }
  if (!/^[0-9]{1,18}$/.test(lastId)) {
    throw invalidArgument("Last-Event-ID must be the id of an event");
  }
  return Object.assign(input, { [field.localName]: BigInt(lastId) });
}
