import { brokenOff, invalid } from "../faults.ts";

/** A chunk of an upload: first what it is about, then its content, then that this is all, where that was announced. */
interface UploadChunk {
  readonly content:
    | { readonly case: "metadata"; readonly value: { readonly announcesEnd: boolean } }
    | { readonly case: "data"; readonly value: Uint8Array }
    | { readonly case: "end"; readonly value: boolean }
    | { readonly case: undefined; readonly value?: undefined };
}

type MetadataOf<Chunk extends UploadChunk> = Extract<Chunk["content"], { case: "metadata" }>["value"];

/** Receives an upload: `begin` sees the metadata before any content is asked for, and gives what takes the content. */
export async function receiveUpload<Chunk extends UploadChunk, Result>(
  chunks: AsyncIterable<Chunk>,
  begin: (metadata: MetadataOf<Chunk>) => (content: Buffer) => Result,
): Promise<Result> {
  let take: ((content: Buffer) => Result) | undefined;
  let isIncomplete = false;
  const pieces: Uint8Array[] = [];
  for await (const { content } of chunks) {
    if (content.case === undefined) continue;
    if (content.case === "metadata") {
      if (take !== undefined) throw invalid("metadata already received");
      take = begin(content.value as MetadataOf<Chunk>);
      isIncomplete = content.value.announcesEnd;
      continue;
    }
    if (take === undefined) throw invalid("metadata must be sent first");
    if (content.case === "data") pieces.push(content.value);
    else isIncomplete &&= !content.value;
  }
  if (take === undefined) throw invalid("no metadata received");
  if (isIncomplete) throw brokenOff();
  return take(Buffer.concat(pieces));
}

/** The most content in one message of a stream. */
const CHUNK_BYTES = 256 * 1024;

export function* pieces(data: Uint8Array): Generator<Uint8Array> {
  for (let offset = 0; offset < data.length; offset += CHUNK_BYTES) yield data.subarray(offset, offset + CHUNK_BYTES);
}
