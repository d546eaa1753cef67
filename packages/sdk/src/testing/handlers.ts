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
import { Fault, toConnectError } from "./faults.ts";

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

/** Handlers of a service by the names of its methods. Those that a mock has nothing to say to are left out. */
export type Handlers<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]?: Handler<Service["method"][Name]>;
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
    const handler = (): unknown => {
      const found = handlers()[method.localName as keyof Handlers<Service>];
      if (found !== undefined) return found;
      throw new Fault("RUNTIME_UNAVAILABLE", `the mock engine has no ${method.localName}`, {
        hint: "test this with a real sandbox: open it without the mock engine",
      });
    };
    // The table's type ties each handler to its method; a loop over the table cannot say so.
    router.rpc(method, guarded(method, handler) as MethodImpl<typeof method>);
  }
}

function guarded(method: DescMethod, handler: () => unknown): unknown {
  if (method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming") {
    return async function* (input: unknown, { signal }: HandlerContext) {
      try {
        yield* (handler() as StreamingHandler)(input, signal);
        // It may have ended only because of the signal, and must not look complete.
        signal.throwIfAborted();
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

/** A page of a list that is there as a whole. A token says where the next one begins. */
export function pageOf<Item>(
  items: readonly Item[],
  { pageSize, pageToken }: { readonly pageSize: number; readonly pageToken: string },
): { readonly items: Item[]; readonly nextPageToken: string } {
  const start = Number(pageToken);
  const end = pageSize > 0 ? start + pageSize : items.length;
  return { items: items.slice(start, end), nextPageToken: end < items.length ? String(end) : "" };
}

/** The most content in one message of a stream. */
const CHUNK_BYTES = 256 * 1024;

export function* pieces(data: Uint8Array): Generator<Uint8Array> {
  for (let offset = 0; offset < data.length; offset += CHUNK_BYTES) yield data.subarray(offset, offset + CHUNK_BYTES);
}

/** First what an upload is about, then its content, then that this is all, where that was announced. */
interface UploadChunk {
  readonly content:
    | { readonly case: "metadata"; readonly value: { readonly announcesEnd: boolean } }
    | { readonly case: "data"; readonly value: Uint8Array }
    | { readonly case: "end"; readonly value: boolean }
    | { readonly case: undefined; readonly value?: undefined };
}

type MetadataOf<Chunk extends UploadChunk> = Extract<Chunk["content"], { case: "metadata" }>["value"];

/** A whole upload. */
export async function receive<Chunk extends UploadChunk>(
  chunks: AsyncIterable<Chunk>,
): Promise<{ readonly metadata: MetadataOf<Chunk>; readonly data: Buffer }> {
  let metadata: MetadataOf<Chunk> | undefined;
  let isOver = false;
  const data: Uint8Array[] = [];
  for await (const { content } of chunks) {
    if (content.case === "metadata") metadata = content.value as MetadataOf<Chunk>;
    if (content.case === "data") data.push(content.value);
    if (content.case === "end") isOver = true;
  }
  if (metadata === undefined) throw new Fault("INVALID_ARGUMENT", "no metadata received");
  if (metadata.announcesEnd && !isOver) throw new Fault("CANCELLED", "the upload broke off");
  return { metadata, data: Buffer.concat(data) };
}
