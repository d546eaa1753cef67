import type { BatchItem, BatchUploadChunk, BatchUploadChunk_Begin } from "@agentfense/protocol/codebase";
import type { BatchPiece } from "../../runtime/codebases/api.ts";
import { feeding } from "../../runtime/feeding.ts";
import { manifestEntryOf } from "./messages/codebase.ts";
import { invalid, required } from "./messages/fields.ts";
import { brokenOff, unread } from "./upload-stream.ts";

/** Receives a batch: `begin` in its first chunk, then items over as many chunks as the client likes. */
export async function receiveBatch<Result>(
  chunks: AsyncIterable<BatchUploadChunk>,
  store: (begin: BatchUploadChunk_Begin, pieces: AsyncIterable<BatchPiece>) => Promise<Result>,
): Promise<Result> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done === true) throw invalid("no begin received");
  const { begin } = first.value;
  if (begin === undefined) throw invalid("begin must be sent first");
  required(begin.codebaseId, "codebase_id", "in begin");
  return await feeding(piecesOf(begin, first.value, unread(iterator)), (pieces) => store(begin, pieces));
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
