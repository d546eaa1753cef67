import type { Content } from "../model/requests.ts";
import type { Requests } from "./rpc.ts";

/** The most content in one message. */
const CHUNK_BYTES = 256 * 1024;

/** The same bytes in pieces that fit a message; none for no bytes. */
export function* pieces(data: Uint8Array): Generator<Uint8Array> {
  for (let offset = 0; offset < data.length; offset += CHUNK_BYTES) yield data.subarray(offset, offset + CHUNK_BYTES);
}

type UploadMessage<Metadata> = {
  content:
    | { case: "metadata"; value: Metadata & { announcesEnd: true } }
    | { case: "data"; value: Uint8Array }
    | { case: "end"; value: true };
};

/**
 * The messages of an upload: one that says what it is about, then the content, then that this was all. Without the last one
 * an upload that is given up could be taken for complete.
 */
export function uploadOf<Metadata>(metadata: Metadata, content: Content): Requests<UploadMessage<Metadata>> {
  return {
    // What comes in pieces can be read once only.
    repeatable: typeof content === "string" || content instanceof Uint8Array,
    async *make() {
      yield { content: { case: "metadata", value: { ...metadata, announcesEnd: true } } };
      for await (const value of piecesOf(content)) yield { content: { case: "data", value } };
      yield { content: { case: "end", value: true } };
    },
  };
}

async function* piecesOf(content: Content): AsyncGenerator<Uint8Array> {
  if (typeof content === "string") yield* pieces(new TextEncoder().encode(content));
  else if (content instanceof Uint8Array) yield* pieces(content);
  else for await (const data of content) yield* pieces(data);
}

/** All of a file that comes in pieces. */
export async function collected(chunks: AsyncIterable<{ readonly data: Uint8Array }>): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  let size = 0;
  for await (const { data } of chunks) {
    all.push(data);
    size += data.length;
  }
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const data of all) {
    whole.set(data, offset);
    offset += data.length;
  }
  return whole;
}

/** A web stream of a file that comes in pieces. Nothing is read ahead, and the call begins with the first read. */
export function streamed(
  chunks: AsyncGenerator<{ readonly data: Uint8Array }, void, undefined>,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value.data);
      },
      async cancel() {
        await chunks.return();
      },
    },
    { highWaterMark: 0 },
  );
}
