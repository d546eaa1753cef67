import { RuntimeError } from "../../runtime/errors.ts";
import { feeding } from "../../runtime/feeding.ts";
import { invalid } from "./messages/fields.ts";

/** A chunk of an upload: first what it is about, then its content, then that this is all, where that was announced. */
interface UploadChunk {
  readonly content:
    | { readonly case: "metadata"; readonly value: { readonly announcesEnd: boolean } }
    | { readonly case: "data"; readonly value: Uint8Array }
    | { readonly case: "end"; readonly value: boolean }
    | { readonly case: undefined; readonly value?: undefined };
}

type MetadataOf<Chunk extends UploadChunk> = Extract<Chunk["content"], { case: "metadata" }>["value"];

/**
 * Receives an upload: `check` looks at the metadata before any content is asked for, `store` takes the content. A chunk with
 * neither is skipped, as it always was.
 */
export async function receiveUpload<Chunk extends UploadChunk, Result>(
  chunks: AsyncIterable<Chunk>,
  check: (metadata: MetadataOf<Chunk>) => void,
  store: (metadata: MetadataOf<Chunk>, content: AsyncIterable<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  const iterator = chunks[Symbol.asyncIterator]();
  const metadata = await readMetadata(iterator);
  check(metadata);
  return await feeding(dataOf(iterator, metadata), (content) => store(metadata, content));
}

async function readMetadata<Chunk extends UploadChunk>(iterator: AsyncIterator<Chunk>): Promise<MetadataOf<Chunk>> {
  for await (const { content } of unread(iterator)) {
    if (content.case === "metadata") return content.value as MetadataOf<Chunk>;
    if (content.case !== undefined) throw invalid("metadata must be sent first");
  }
  throw invalid("no metadata received");
}

async function* dataOf(
  iterator: AsyncIterator<UploadChunk>,
  { announcesEnd }: { readonly announcesEnd: boolean },
): AsyncGenerator<Uint8Array> {
  for await (const { content } of unread(iterator)) {
    if (content.case === "metadata") throw invalid("metadata already received");
    if (content.case === "data" && content.value.length > 0) yield content.value;
    if (content.case === "end" && content.value) return;
  }
  if (announcesEnd) throw brokenOff();
}

export function brokenOff(): RuntimeError {
  return new RuntimeError("CANCELLED", "the upload broke off: its end was announced and did not come");
}

/**
 * The rest of a stream of requests. Leaving a loop over it does not close the stream: closing what a request comes from takes
 * its response along, and there is an error to send.
 */
export function unread<T>(iterator: AsyncIterator<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => ({ next: () => iterator.next() }) };
}
