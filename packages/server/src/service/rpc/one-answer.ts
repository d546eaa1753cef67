import {
  create,
  type DescMethod,
  type DescMethodClientStreaming,
  type DescMethodUnary,
  type Message,
} from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, MethodImpl } from "@connectrpc/connect";
import { createMethodSerializationLookup, createMethodUrl, type Serialization } from "@connectrpc/connect/protocol";
import { paced, type UploadPace } from "../upload-pace.ts";

// Most calls have one answer, to one message or to a few. Connect carries them through a dozen streams each way, which takes longer
// than what most methods do; whoever has the bytes of the messages calls the method here.

/** What the gate, the supervision and the handlers look at. */
export interface CallContext extends Pick<HandlerContext, "method" | "values" | "signal" | "protocolName"> {
  readonly requestHeader: { get(name: string): string | null };
}

/** What every call with one answer passes, whichever way it came. */
export interface OneAnswerChain {
  readonly readMaxBytes: number;
  readonly writeMaxBytes: number;
  /** The pace of the messages, where they are a stream. */
  readonly pace: UploadPace;
  /** Before the message is read. */
  readonly gate: (context: CallContext) => Promise<void>;
  /** Around the method's work. */
  readonly supervise: <Answer>(context: CallContext, work: (signal: AbortSignal) => Promise<Answer>) => Promise<Answer>;
}

export interface OneAnswerMethod {
  readonly desc: DescMethodUnary | DescMethodClientStreaming;
  readonly input: Serialization<Message>;
  readonly output: Serialization<Message>;
  /** Answers one message, or a stream of them. */
  readonly implementation: (
    request: Message | AsyncIterable<Message>,
    context: HandlerContext,
  ) => Promise<Message> | Message;
}

/** The methods with one answer that were registered. */
export class OneAnswerMethods {
  readonly #chain: OneAnswerChain;
  readonly #byPath = new Map<string, OneAnswerMethod>();

  constructor(chain: OneAnswerChain) {
    this.#chain = chain;
  }

  /** A router from which these are learnt as they are registered. */
  learningFrom(router: ConnectRouter): ConnectRouter {
    const learning: ConnectRouter = {
      handlers: router.handlers,
      service: (service, implementation, options) => {
        for (const method of service.methods) {
          const found: unknown = Reflect.get(implementation, method.localName);
          if (typeof found === "function") this.#learn(method, found.bind(implementation) as MethodImpl<DescMethod>);
        }
        router.service(service, implementation, options);
        return learning;
      },
      rpc: (method, implementation, options) => {
        this.#learn(method, implementation as MethodImpl<DescMethod>);
        router.rpc(method, implementation, options);
        return learning;
      },
    };
    return learning;
  }

  /** Finds a method by the path of a request: "/sandbox.v1.SandboxService/Exec". */
  find(path: string): OneAnswerMethod | undefined {
    return this.#byPath.get(path);
  }

  /** Calls a method of one message; `read` is asked for it, of so many bytes at most, when the caller was let in. */
  async call(
    method: OneAnswerMethod,
    context: CallContext,
    read: (mostBytes: number) => Promise<Uint8Array>,
  ): Promise<Uint8Array> {
    const { gate, readMaxBytes } = this.#chain;
    await gate(context);
    const request = method.input.parse(await read(readMaxBytes));
    return await this.#answer(method, context, () => request);
  }

  /** Calls a method of a stream of messages, which is asked for in the same way. */
  async collect(
    method: OneAnswerMethod,
    context: CallContext,
    read: (mostBytes: number) => AsyncIterable<Uint8Array>,
  ): Promise<Uint8Array> {
    const { gate, pace, readMaxBytes } = this.#chain;
    await gate(context);
    const messages = parsed(read(readMaxBytes), method.input);
    return await this.#answer(method, context, (signal) => paced(messages, pace, signal));
  }

  async #answer(
    { desc, implementation, output }: OneAnswerMethod,
    context: CallContext,
    requestOf: (signal: AbortSignal) => Message | AsyncIterable<Message>,
  ): Promise<Uint8Array> {
    const answer = await this.#chain.supervise(context, async (signal) => {
      return create(desc.output, await implementation(requestOf(signal), { ...context, signal } as HandlerContext));
    });
    return output.serialize(answer);
  }

  #learn(desc: DescMethod, implementation: MethodImpl<DescMethod>): void {
    if (desc.methodKind !== "unary" && desc.methodKind !== "client_streaming") return;
    const serialization = createMethodSerializationLookup(desc, undefined, undefined, this.#chain);
    this.#byPath.set(createMethodUrl("/", desc), {
      desc: desc as OneAnswerMethod["desc"],
      input: serialization.getI(true),
      output: serialization.getO(true),
      implementation: implementation as OneAnswerMethod["implementation"],
    });
  }
}

async function* parsed(messages: AsyncIterable<Uint8Array>, input: Serialization<Message>): AsyncGenerator<Message> {
  for await (const message of messages) yield input.parse(message);
}
