import type { Message, Registry } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { BodyLimits } from "./body.ts";
import type { Route } from "./routes.ts";

/** One HTTP request on its way to a method. */
export interface Call {
  readonly route: Route;
  readonly request: Request;
  readonly pathValues: ReadonlyMap<string, string>;
  /** Without the question mark. */
  readonly query: string;
  readonly transport: Transport;
  readonly limits: BodyLimits;
  readonly registry: Registry;
  /** Aborts when the client goes. */
  readonly signal: AbortSignal;
  readonly headers: Headers;
  readonly heartbeatMs: number;
  reportDefect(error: unknown): void;
}

const PASSED_HEADERS = ["authorization", "x-api-key", "user-agent", "traceparent", "tracestate", "x-request-id"];

/** What of the HTTP headers goes on with the call: who asks and which trace it belongs to, nothing else. */
export function callHeaders(request: Request): Headers {
  const headers = new Headers();
  for (const name of PASSED_HEADERS) {
    const value = request.headers.get(name);
    if (value !== null) {
      headers.set(name, value);
    }
  }
  return headers;
}

/** The answers of a stream that is under way. */
export interface OpenStream {
  next(): Promise<IteratorResult<Message>>;
  /** Aborts the method's signal, by which it lets go of what it holds wherever it is. */
  end(): void;
}

/** Begins a call. The transport says nothing before the first message, which may take for ever: only `next` waits. */
export function openStream(call: Call, method: Parameters<Transport["stream"]>[0], input: Message): OpenStream {
  const stop = new AbortController();
  const signal = AbortSignal.any([call.signal, stop.signal]);
  const begun = call.transport
    .stream(method, signal, undefined, call.headers, once(input))
    .then((response) => response.message[Symbol.asyncIterator]());
  return { next: async () => (await begun).next(), end: () => stop.abort() };
}

async function* once<T>(value: T): AsyncGenerator<T> {
  yield value;
}
