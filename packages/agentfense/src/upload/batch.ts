import { createHash, hash } from "node:crypto";
import type { BatchItemSchema, BatchUploadChunkSchema } from "@agentfense/protocol/codebase";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ContentChanged, openContent, piecesOf, readSmall } from "./content.ts";
import type { HashedFile } from "./hash.ts";
import { entryWeight, MESSAGE_BYTES, manifestEntry, type UploadEntry } from "./manifest.ts";

type Chunk = MessageInitShape<typeof BatchUploadChunkSchema>;
type Item = MessageInitShape<typeof BatchItemSchema>;

export interface BatchPlan {
  readonly top: string;
  readonly begin: NonNullable<Chunk["begin"]>;
  readonly entries: readonly UploadEntry[];
  /** Paths whose content the server lacks. */
  readonly missing: ReadonlySet<string>;
}

/** The messages of one batch: every entry, and content only where the server lacks it. */
export async function* batchChunks(plan: BatchPlan, onBytes: (count: number) => void): AsyncGenerator<Chunk> {
  yield { begin: plan.begin };
  let items: Item[] = [];
  let weight = 0;
  for await (const { item, bytes } of batchItems(plan)) {
    if (weight + bytes > MESSAGE_BYTES && items.length > 0) {
      yield { items };
      items = [];
      weight = 0;
    }
    items.push(item);
    weight += bytes;
    onBytes(item.data?.length ?? 0);
  }
  if (items.length > 0) yield { items };
}

async function* batchItems({ top, entries, missing }: BatchPlan): AsyncGenerator<{ item: Item; bytes: number }> {
  for (const entry of entries) {
    const described: Item = { entry: manifestEntry(entry) };
    if (entry.kind !== "file" || entry.size === 0 || !missing.has(entry.path)) {
      yield { item: described, bytes: entryWeight(entry) };
      continue;
    }
    const whole = unchangedWhole(top, entry);
    if (whole !== undefined) {
      yield { item: { ...described, data: whole }, bytes: entryWeight(entry) + whole.length };
      continue;
    }
    let first = true;
    for await (const data of unchangedContent(top, entry)) {
      yield { item: first ? { ...described, data } : { data }, bytes: entryWeight(entry) + data.length };
      first = false;
    }
  }
}

/** All of the content that was hashed; undefined when it is not small, or not the same any more. */
function unchangedWhole(top: string, { path, size, sha256 }: HashedFile): Uint8Array | undefined {
  try {
    const content = readSmall(top, path, size);
    return content !== undefined && hash("sha256", content, "hex") === sha256 ? content : undefined;
  } catch {
    return undefined;
  }
}

/** The content that was hashed, or an error: two halves of two versions are nobody's file. */
async function* unchangedContent(top: string, entry: HashedFile): AsyncGenerator<Uint8Array> {
  await using file = await openContent(top, entry.path).catch(() => {
    throw new ContentChanged(entry.path);
  });
  const digest = createHash("sha256");
  let sent = 0;
  for await (const piece of piecesOf(file, entry.size)) {
    sent += piece.length;
    if (sent > entry.size) throw new ContentChanged(entry.path);
    digest.update(piece);
    yield piece;
  }
  if (sent !== entry.size || digest.digest("hex") !== entry.sha256) throw new ContentChanged(entry.path);
}
