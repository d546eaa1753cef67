import { setTimeout as sleep } from "node:timers/promises";
import { bodyOf } from "../body.ts";
import type { Budget } from "../budget.ts";
import { E2bFailure, type FailureCode, failureOf } from "./failure.ts";

// Connect's protocol with JSON, as E2B's clients speak it over HTTP/1.1. A message of a stream is one byte of flags, four of length, and JSON;
// the last one has the flag 2, and an error or nothing.

const LAST = 2;
/** Flags and length. */
const HEAD_BYTES = 5;
const LONGEST_MESSAGE = 32 * 1024 * 1024;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

type Message = Readonly<Record<string, unknown>>;

export interface RpcCall {
  readonly headers: Headers;
  readonly signal: AbortSignal;
  /** Of `Connect-Timeout-Ms`; undefined: as long as it takes. */
  readonly timeoutMs: number | undefined;
}

export type Unary = (message: Message, call: RpcCall) => Promise<object>;
/** The signal ends when the client leaves or its time is up. */
export type ServerStream = (message: Message, call: RpcCall) => AsyncIterable<object>;
export type ClientStream = (messages: AsyncIterable<Message>, call: RpcCall) => Promise<object>;

export type Method =
  | { readonly kind: "unary"; readonly run: Unary }
  | { readonly kind: "server"; readonly run: ServerStream }
  | { readonly kind: "client"; readonly run: ClientStream };

/** `bodies`: what all messages outside of streams may take together. */
export async function answerRpc(method: Method, request: Request, bodies: Budget): Promise<Response> {
  const timeout = Number(request.headers.get("connect-timeout-ms") ?? Number.NaN);
  const timeoutMs = timeout > 0 ? timeout : undefined;
  const call = { headers: request.headers, signal: request.signal, timeoutMs };
  if (method.kind === "unary") return await answerUnary(method.run, request, call, bodies);
  if (request.body === null) throw new E2bFailure("invalid_argument", "the stream has no message");
  const messages = framesIn(request.body);
  if (method.kind === "client")
    return streamOf(
      once(() => method.run(messages, call)),
      call,
      undefined,
    );
  const first = await messages.next();
  if (first.done === true) throw new E2bFailure("invalid_argument", "the stream has no message");
  return streamOf((signal) => method.run(first.value, { ...call, signal }), call, timeoutMs);
}

async function answerUnary(run: Unary, request: Request, call: RpcCall, bodies: Budget): Promise<Response> {
  try {
    using bounded = await bodyOf(request, { limit: LONGEST_MESSAGE, budget: bodies });
    return Response.json(await run(messageOf(await bounded.request.text()), call));
  } catch (error) {
    const { code, message, status } = failureOf(error);
    return Response.json({ code, message }, { status, headers: { "should-retry": "false" } });
  }
}

async function* once(run: () => Promise<object>): AsyncGenerator<object> {
  yield await run();
}

function messageOf(text: string): Message {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null) return parsed as Message;
  } catch {
    // told below
  }
  throw new E2bFailure("invalid_argument", "the message is no JSON object");
}

/** Pieces are put together once for each message, however small they come. */
async function* framesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<Message, void, undefined> {
  let pieces: Uint8Array[] = [];
  let held = 0;
  let wanted = HEAD_BYTES;
  for await (const piece of body) {
    pieces.push(piece);
    held += piece.length;
    if (held < wanted) continue;
    let rest = Buffer.concat(pieces, held);
    for (;;) {
      wanted = HEAD_BYTES;
      if (rest.length < wanted) break;
      const length = rest.readUInt32BE(1);
      if (length > LONGEST_MESSAGE) throw new E2bFailure("resource_exhausted", "the message is too large");
      wanted += length;
      if (rest.length < wanted) break;
      const flags = rest[0]!;
      const text = rest.subarray(HEAD_BYTES, wanted).toString();
      rest = rest.subarray(wanted);
      if (flags === LAST) return;
      if (flags !== 0) throw new E2bFailure("unimplemented", "compressed messages are not read here");
      yield messageOf(text);
    }
    pieces = [rest];
    held = rest.length;
  }
}

/** An answer of messages as they come, and of signs of life in between when the client asks for them. */
function streamOf(
  open: ((signal: AbortSignal) => AsyncIterable<object>) | AsyncIterable<object>,
  call: RpcCall,
  timeoutMs: number | undefined,
): Response {
  const over = new AbortController();
  const late = timeoutMs === undefined ? [] : [AbortSignal.timeout(Math.min(Math.ceil(timeoutMs), LONGEST_TIMER_MS))];
  const signal = AbortSignal.any([call.signal, over.signal, ...late]);
  const messages = (typeof open === "function" ? open(signal) : open)[Symbol.asyncIterator]();
  const pingSeconds = Number(call.headers.get("keepalive-ping-interval") ?? Number.NaN);
  const pingMs = pingSeconds > 0 ? Math.min(pingSeconds * 1000, LONGEST_TIMER_MS) : undefined;
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => {});
  signal.addEventListener("abort", () => gone.reject(signal.reason), { once: true });
  let pending: Promise<IteratorResult<object>> | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          pending ??= messages.next();
          pending.catch(() => {}); // looked at below, if anybody still does
          const next = await withinPing(Promise.race([pending, gone.promise]), pingMs);
          if (next === "quiet") return controller.enqueue(frame(0, { event: { keepalive: {} } }));
          pending = undefined;
          if (next.done !== true && !isEnd(next.value)) return controller.enqueue(frame(0, next.value));
          controller.enqueue(Buffer.concat([...(next.done ? [] : [frame(0, next.value)]), frame(LAST, {})]));
        } catch (error) {
          controller.enqueue(frame(LAST, { error: toldOf(error, late[0]?.aborted === true) }));
        }
        over.abort(OVER);
        messages.return?.()?.catch(() => {}); // it has nothing more to tell
        controller.close();
      },
      cancel: () => over.abort(OVER),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "content-type": "application/connect+json" } });
}

/** Made once: where no reason is given, each stream's end makes one, with its stack. */
const OVER = new Error("the stream is over");

/** How a process ended is the last that is told of it: both go in one piece. */
function isEnd(message: object): boolean {
  return (message as { readonly event?: { readonly end?: object } }).event?.end !== undefined;
}

function toldOf(error: unknown, isLate: boolean): { readonly code: FailureCode; readonly message: string } {
  if (isLate) return { code: "deadline_exceeded", message: "the time of the call is up" };
  const { code, message } = failureOf(error);
  return { code, message };
}

async function withinPing<T>(work: Promise<T>, pingMs: number | undefined): Promise<T | "quiet"> {
  if (pingMs === undefined) return await work;
  const heard = new AbortController();
  const quiet = sleep(pingMs, "quiet" as const, { signal: heard.signal, ref: false });
  quiet.catch(() => {}); // something was heard
  try {
    return await Promise.race([work, quiet]);
  } finally {
    heard.abort();
  }
}

function frame(flags: number, message: object): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}
