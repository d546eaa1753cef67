import type { BatchItem, BatchUploadChunk, BatchUploadChunk_Begin } from "@agentfense/protocol/codebase";
import type { BatchPiece } from "../../runtime/codebases/api.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { feeding } from "../../runtime/waiting.ts";
import { manifestEntryOf } from "./messages/codebase.ts";
import { invalid, required } from "./messages/fields.ts";

/** A chunk of an upload: first what it is about, then its content, then that this is all, where that was announced. */
interface UploadChunk {
  readonly content:
    | { readonly case: "metadata"; readonly value: { readonly announcesEnd: boolean } }
    | { readonly case: "data"; readonly value: Uint8Array }
    | { readonly case: "end"; readonly value: boolean }
    | { readonly case: undefined; readonly value?: undefined };
}

type MetadataOf<Chunk extends UploadChunk> = Extract<Chunk["content"], { case: "metadata" }>["value"];

/** Receives an upload: `store` gets its metadata before any content is asked for. A chunk with neither is skipped, as it always was. */
export async function receiveUpload<Chunk extends UploadChunk, Result>(
  chunks: AsyncIterable<Chunk>,
  store: (metadata: MetadataOf<Chunk>, content: AsyncIterable<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  const iterator = chunks[Symbol.asyncIterator]();
  const metadata = await readMetadata(iterator);
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

function brokenOff(): RuntimeError {
  return new RuntimeError("CANCELLED", "the upload broke off: its end was announced and did not come");
}

/**
 * The rest of a stream of requests. Leaving a loop over it does not close the stream: closing what a request comes from takes
 * its response along, and there is an error to send.
 */
export function unread<T>(iterator: AsyncIterator<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => ({ next: () => iterator.next() }) };
}

/** Receives a batch: `begin` in its first chunk, then items over as many chunks as the client likes. */
export async function receiveBatch<Result>(
  chunks: AsyncIterable<BatchUploadChunk>,
  store: (begin: BatchUploadChunk_Begin, pieces: AsyncIterable<BatchPiece>) => Promise<Result>,
): Promise<Result> {
  const iterator = chunks[Symbol.asyncIterator]();
  const { first, opening } = await readFirst(iterator, "begin", ({ begin }) => begin);
  required(opening.codebaseId, "codebase_id", "in begin");
  return await feeding(piecesOf(opening, first, unread(iterator)), (pieces) => store(opening, pieces));
}

async function* piecesOf(
  { announcesEnd }: BatchUploadChunk_Begin,
  first: BatchUploadChunk,
  chunks: AsyncIterable<BatchUploadChunk>,
): AsyncGenerator<BatchPiece> {
  let position = 0;
  for (const item of first.items) yield pieceOf(item, position++);
  if (first.end) return;
  for await (const { begin, items, end } of chunks) {
    if (begin !== undefined) throw invalid("begin already received");
    for (const item of items) yield pieceOf(item, position++);
    if (end) return;
  }
  if (announcesEnd) throw brokenOff();
}

function pieceOf({ entry, data }: BatchItem, position: number): BatchPiece {
  if (entry === undefined && position === 0) throw invalid("items[0]: entry is required: no file comes before it");
  return {
    ...(entry === undefined ? {} : { entry: manifestEntryOf(entry, `items[${position}]`) }),
    ...(data.length === 0 ? {} : { data }),
  };
}

/** The first message of a stream, which has to have an opening of this name. */
export async function readFirst<Message, Opening>(
  messages: AsyncIterator<Message>,
  name: string,
  openingOf: (message: Message) => Opening | undefined,
): Promise<{ readonly first: Message; readonly opening: Opening }> {
  const first = await messages.next();
  if (first.done === true) throw invalid(`no ${name} received`);
  const opening = openingOf(first.value);
  if (opening === undefined) throw invalid(`${name} must be sent first`);
  return { first: first.value, opening };
}

/** The most content in one message of a stream. */
const CHUNK_BYTES = 256 * 1024;

/** The same bytes in pieces that fit a message. Nothing is read ahead: whoever takes the pieces sets the pace. */
export async function* chunked(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const data of content) yield* pieces(data);
}

export function* pieces(data: Uint8Array): Generator<Uint8Array> {
  for (let offset = 0; offset < data.length; offset += CHUNK_BYTES) {
    yield data.subarray(offset, offset + CHUNK_BYTES);
  }
}
