import { setImmediate } from "node:timers/promises";
import { inspect } from "node:util";
import { http } from "@agentfense/protocol/annotations";
import type { SandboxService } from "@agentfense/protocol/sandbox";
import {
  type Message as AnyMessage,
  type DescField,
  type DescMethod,
  type DescService,
  getOption,
  hasOption,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { type ConnectRouter, createContextKey, type HandlerContext, type MethodImpl } from "@connectrpc/connect";
import type { Caller } from "../../runtime/caller.ts";
import type { Log } from "../../runtime/log.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { toConnectError } from "./connect-error.ts";
import { required } from "./messages/fields.ts";

/** Who asks, put there by whoever authenticated the request. Absent: nobody did, and no handler runs. */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: "caller" });

/** What a handler knows about the call besides its message. */
export interface Call {
  readonly caller: Caller;
  /** Aborts when the caller goes away, when its deadline passes, and when the call is over. */
  readonly signal: AbortSignal;
  /** "grpc", "grpc-web" or "connect": decides how much an error can carry. */
  readonly protocol: string;
}

/** A method as Connect has it, told about the call in our words. One whose answer says nothing need not give it. */
type Handler<Method extends DescMethod> =
  MethodImpl<Method> extends (request: infer Request, context: HandlerContext) => infer Answer
    ? (request: Request, call: Call) => Answer | NoAnswer<MessageShape<Method["output"]>>
    : never;

type NoAnswer<Message> = Exclude<keyof Message, keyof AnyMessage> extends never ? Promise<void> : never;

/** One handler a method; a method without one does not compile. */
export type Handlers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]: Handler<Service["method"][Name]>;
};

/** Some of the methods of SandboxService: it has more than one file can tell. */
export type SandboxHandlers = Partial<Handlers<typeof SandboxService>>;

/** What all handlers look like once their messages are forgotten. */
type UnaryHandler = (input: unknown, call: Call) => Promise<unknown>;
type StreamingHandler = (input: unknown, call: Call) => AsyncIterable<unknown>;

interface ServeOptions {
  readonly log: Log;
  /** The audit log has what was done, before whoever asked for it learns that it is done. */
  readonly audited: () => Promise<void>;
  /** Refuses who may not call a method at all, before its request is looked at. */
  readonly admit?: (caller: Caller, method: DescMethod) => void;
}

/** Registers a service: no method runs without a caller, and what an error looks like from outside is decided here. */
export function serve<Service extends DescService>(
  router: ConnectRouter,
  service: Service,
  handlers: Handlers<Service>,
  options: ServeOptions,
): void {
  for (const method of service.methods) {
    const handler: unknown = handlers[method.localName as keyof Handlers<Service>];
    // The table's type ties each handler to its method; a loop over the table cannot say so.
    router.rpc(method, guarded(method, handler, options) as MethodImpl<typeof method>);
  }
}

function guarded(method: DescMethod, handler: unknown, { log, audited, admit }: ServeOptions): unknown {
  const onlyReads = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const name = `${method.parent.typeName}.${method.name}`;
  const ids = idsOf(method);
  /** What a handler gets: the message, of which the ids are there, or a stream of them; and the call, which is admitted before. */
  const taken = (input: unknown, context: HandlerContext): [request: unknown, call: Call] => {
    const call = callOf(context);
    admit?.(call.caller, method);
    const isStream = method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
    if (isStream) return [untilTheEnd(input as AsyncIterable<unknown>, call.signal), call];
    for (const id of ids) required((input as Record<string, string>)[id.localName] ?? "", id.name);
    return [input, call];
  };
  if (method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming") {
    const stream = handler as StreamingHandler;
    return async function* (input: unknown, context: HandlerContext) {
      const place = { log, method: name, signal: context.signal };
      try {
        yield* untilAborted(stream(...taken(input, context)), place);
      } catch (error) {
        throw toConnectError(error, place);
      } finally {
        if (!onlyReads) await audited();
      }
    };
  }
  const unary = handler as UnaryHandler;
  return async (input: unknown, context: HandlerContext) => {
    try {
      return (await unary(...taken(input, context))) ?? {};
    } catch (error) {
      throw toConnectError(error, { log, method: name, signal: context.signal });
    } finally {
      if (!onlyReads) await audited();
    }
  };
}

/** The fields that say what a call is about: those that stand as one segment in its path over HTTP. */
function idsOf(method: DescMethod): readonly DescField[] {
  if (!hasOption(method, http)) return [];
  const path = getOption(method, http).pattern.value ?? "";
  return method.input.fields.filter(
    (field) => field.fieldKind === "scalar" && field.scalar === ScalarType.STRING && path.includes(`/{${field.name}}`),
  );
}

/** In the process, a stream of requests that breaks off looks like one that ends, until its signal says so a moment later. */
async function* untilTheEnd<T>(requests: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  yield* requests;
  await setImmediate();
  signal.throwIfAborted();
}

/**
 * A stream that is ended by its signal also while it waits for its next message to be taken: a caller that went away takes
 * none, and not every transport says so, but what the stream has open must be closed.
 */
async function* untilAborted<T>(
  stream: AsyncIterable<T>,
  { log, method, signal }: { log: Log; method: string; signal: AbortSignal },
): AsyncGenerator<T> {
  const iterator = stream[Symbol.asyncIterator]();
  const end = () => {
    iterator.return?.().catch((error: unknown) => {
      log({ level: "warn", message: `${method}: ending its stream failed`, error: inspect(error) });
    });
  };
  signal.addEventListener("abort", end, { once: true });
  try {
    yield* { [Symbol.asyncIterator]: () => iterator };
    // It may have ended only because of the signal, and must not look complete.
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", end);
  }
}

function callOf({ values, signal, protocolName: protocol }: HandlerContext): Call {
  const caller = values.get(callerKey);
  if (caller !== undefined) return { caller, signal, protocol };
  throw new RuntimeError("UNAUTHENTICATED", "an API key is required", {
    hint: "send it as the header Authorization: Bearer <key>",
  });
}
