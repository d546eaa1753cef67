import type { BatchItemSchema, BatchUploadChunkSchema } from "@agentfense/protocol/codebase";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BatchEntry } from "../../model/requests.ts";
import { pieces } from "../content.ts";
import { entryWeight, MESSAGE_BYTES, manifestMessage } from "./manifest.ts";

export type BatchChunk = MessageInitShape<typeof BatchUploadChunkSchema>;
type Item = MessageInitShape<typeof BatchItemSchema>;

/** The messages of one batch: as many items in each as fit. */
export async function* batchChunks(
  begin: NonNullable<BatchChunk["begin"]>,
  entries: AsyncIterable<BatchEntry> | Iterable<BatchEntry>,
  onBytes: (count: number) => void = () => {},
): AsyncGenerator<BatchChunk> {
  yield { begin: { ...begin, announcesEnd: true } };
  let items: Item[] = [];
  let weight = 0;
  for await (const { item, bytes } of batchItems(entries)) {
    if (weight + bytes > MESSAGE_BYTES && items.length > 0) {
      yield { items };
      items = [];
      weight = 0;
    }
    items.push(item);
    weight += bytes;
    if (item.data !== undefined) onBytes(item.data.length);
  }
  // Without it a batch that is given up could be taken for complete, and what it had not got to, for removed.
  yield { items, end: true };
}

async function* batchItems(
  entries: AsyncIterable<BatchEntry> | Iterable<BatchEntry>,
): AsyncGenerator<{ readonly item: Item; readonly bytes: number }> {
  for await (const entry of entries) {
    let item: Item = { entry: manifestMessage(entry) };
    let bytes = entryWeight(entry);
    // What is short, or has no content, is one item; all that follows the first piece goes on with the file.
    for await (const data of contentOf(entry)) {
      if (item.data !== undefined) {
        yield { item, bytes };
        item = {};
        bytes = 0;
      }
      item = { ...item, data };
      bytes += data.length;
    }
    yield { item, bytes };
  }
}

async function* contentOf({ content }: BatchEntry): AsyncGenerator<Uint8Array> {
  if (content === undefined) return;
  if (content instanceof Uint8Array) yield* pieces(content);
  else for await (const data of content) yield* pieces(data);
}
