import { create, type DescMethod, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, MethodImpl } from "@connectrpc/connect";
import { createMethodSerializationLookup, createMethodUrl, type Serialization } from "@connectrpc/connect/protocol";

// Most calls are one message and one answer. Connect carries them as streams of one, through a dozen of them each way, which takes
// longer than what most methods do; whoever has the bytes of the message calls the method here.

/** What the gate, the supervision and the handlers look at. */
export interface CallContext extends Pick<HandlerContext, "method" | "values" | "signal" | "protocolName"> {
  readonly requestHeader: { get(name: string): string | null };
}

/** What every call of one message passes, whichever way it came. */
export interface UnaryChain {
  readonly readMaxBytes: number;
  readonly writeMaxBytes: number;
  /** Before the message is read. */
  readonly gate: (context: CallContext) => Promise<void>;
  /** Around the method's work. */
  readonly supervise: <Answer>(context: CallContext, work: (signal: AbortSignal) => Promise<Answer>) => Promise<Answer>;
}

export interface UnaryMethod {
  readonly desc: DescMethodUnary;
  readonly input: Serialization<Message>;
  readonly output: Serialization<Message>;
  readonly implementation: (request: Message, context: HandlerContext) => Promise<Message> | Message;
}

/** The methods of one message and one answer that were registered. */
export class UnaryMethods {
  readonly #chain: UnaryChain;
  readonly #byPath = new Map<string, UnaryMethod>();

  constructor(chain: UnaryChain) {
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

  /** By the path of a request: "/sandbox.v1.SandboxService/Exec". */
  find(path: string): UnaryMethod | undefined {
    return this.#byPath.get(path);
  }

  /** Calls a method; `read` is asked for the message, of so many bytes at most, when the caller was let in. */
  async call(
    method: UnaryMethod,
    context: CallContext,
    read: (mostBytes: number) => Promise<Uint8Array>,
  ): Promise<Uint8Array> {
    const { gate, supervise, readMaxBytes } = this.#chain;
    await gate(context);
    const request = method.input.parse(await read(readMaxBytes));
    const answer = await supervise(context, async (signal) => {
      const { desc, implementation } = method;
      return create(desc.output, await implementation(request, { ...context, signal } as HandlerContext));
    });
    return method.output.serialize(answer);
  }

  #learn(desc: DescMethod, implementation: MethodImpl<DescMethod>): void {
    if (desc.methodKind !== "unary") return;
    const serialization = createMethodSerializationLookup(desc, undefined, undefined, this.#chain);
    this.#byPath.set(createMethodUrl("/", desc), {
      desc: desc as DescMethodUnary,
      input: serialization.getI(true),
      output: serialization.getO(true),
      implementation: implementation as UnaryMethod["implementation"],
    });
  }
}
