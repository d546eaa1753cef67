import type {
  DescMethod,
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, MethodImpl } from "@connectrpc/connect";
import { toConnectError } from "../faults.ts";

type Handler<Method extends DescMethod> =
  Method extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, signal: AbortSignal) => Promise<MessageInitShape<O>>
    : Method extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, signal: AbortSignal) => AsyncIterable<MessageInitShape<O>>
      : Method extends DescMethodClientStreaming<infer I, infer O>
        ? (requests: AsyncIterable<MessageShape<I>>, signal: AbortSignal) => Promise<MessageInitShape<O>>
        : Method extends DescMethodBiDiStreaming<infer I, infer O>
          ? (requests: AsyncIterable<MessageShape<I>>, signal: AbortSignal) => AsyncIterable<MessageInitShape<O>>
          : never;

/** One handler a method; a method without one does not compile. */
export type Handlers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]: Handler<Service["method"][Name]>;
};

/** What all handlers look like once their messages are forgotten. */
type UnaryHandler = (input: unknown, signal: AbortSignal) => Promise<unknown>;
type StreamingHandler = (input: unknown, signal: AbortSignal) => AsyncIterable<unknown>;

/** Registers a service; what an error looks like from outside is decided here. */
export function serve<Service extends DescService>(
  router: ConnectRouter,
  service: Service,
  handlers: () => Handlers<Service>,
): void {
  for (const method of service.methods) {
    const handler = (): unknown => handlers()[method.localName as keyof Handlers<Service>];
    // The table's type ties each handler to its method; a loop over the table cannot say so.
    router.rpc(method, guarded(method, handler) as MethodImpl<typeof method>);
  }
}

function guarded(method: DescMethod, handler: () => unknown): unknown {
  if (method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming") {
    return async function* (input: unknown, { signal }: HandlerContext) {
      try {
        yield* untilAborted((handler() as StreamingHandler)(input, signal), signal);
      } catch (error) {
        throw toConnectError(error, signal);
      }
    };
  }
  return async (input: unknown, { signal }: HandlerContext) => {
    try {
      return await (handler() as UnaryHandler)(input, signal);
    } catch (error) {
      throw toConnectError(error, signal);
    }
  };
}

/** A caller that went away takes no next message: the stream ends also while it waits for that. */
async function* untilAborted<Message>(stream: AsyncIterable<Message>, signal: AbortSignal): AsyncGenerator<Message> {
  const iterator = stream[Symbol.asyncIterator]();
  const end = (): void => void iterator.return?.().catch(() => {}); // the call is over, and so is its error
  signal.addEventListener("abort", end, { once: true });
  try {
    yield* { [Symbol.asyncIterator]: () => iterator };
    // It may have ended only because of the signal, and must not look complete.
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", end);
  }
}
