import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  createContextValues,
  createRouterTransport,
  type Transport,
} from "@connectrpc/connect";
import { createMethodSerializationLookup, createMethodUrl } from "@connectrpc/connect/protocol";
import { unless } from "../../runtime/waiting.ts";
import { type OneAnswerChain, OneAnswerMethods } from "./one-answer.ts";

export interface MemoryTransportOptions {
  readonly register: (router: ConnectRouter) => void;
  readonly oneAnswer: OneAnswerChain;
  /** What streams pass. */
  readonly streams: ConnectRouterOptions;
}

/**
 * The services for whoever is in this process. A message is a copy on its way here and back, as if it had come over the network:
 * nobody changes under a handler what it works with.
 */
export function createMemoryTransport({ register, oneAnswer, streams }: MemoryTransportOptions): Transport {
  const methods = new OneAnswerMethods(oneAnswer);
  const { readMaxBytes, writeMaxBytes } = oneAnswer;
  const connect = createRouterTransport((router) => register(methods.learningFrom(router)), {
    transport: { readMaxBytes, writeMaxBytes },
    router: streams,
  });
  return {
    stream: connect.stream,
    async unary(method, signal, timeoutMs, header, input, values) {
      const found = methods.find(createMethodUrl("/", method));
      if (found === undefined) return await connect.unary(method, signal, timeoutMs, header, input, values);
      const serialization = createMethodSerializationLookup(method, undefined, undefined, oneAnswer);
      const message = serialization.getI(true).serialize(create(method.input, input));
      const end = new AbortController();
      const either = signal === undefined ? end.signal : AbortSignal.any([signal, end.signal]);
      const late = (): never => {
        const error = new ConnectError("the operation timed out", Code.DeadlineExceeded);
        end.abort(error);
        throw error;
      };
      try {
        either.throwIfAborted();
        const requestHeader = new Headers(header);
        const context = {
          method,
          values: createContextValues(),
          signal: either,
          protocolName: "connect",
          requestHeader,
        };
        const calling = methods.call(found, context, async () => message);
        const waitMs = timeoutMs !== undefined && timeoutMs > 0 ? timeoutMs : undefined;
        const answer = await unless(calling, { signal, late, ...(waitMs === undefined ? {} : { waitMs }) });
        const head = { header: new Headers(), trailer: new Headers() };
        return {
          stream: false,
          service: method.parent,
          method,
          ...head,
          message: serialization.getO(true).parse(answer),
        };
      } catch (error) {
        throw told(error);
      } finally {
        end.abort("the call is over");
      }
    },
  };
}

/** As over the network: without what it came from. */
function told(error: unknown): ConnectError {
  if (!(error instanceof ConnectError)) return ConnectError.from(error, Code.Canceled);
  const { rawMessage, code, details } = error;
  const copy = new ConnectError(rawMessage, code);
  copy.details = details;
  return copy;
}
