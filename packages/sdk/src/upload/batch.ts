import { createHash } from "node:crypto";
import type { BatchEntry } from "../model/requests.ts";
import { contentChanged, openContent, piecesOf, readSmall } from "./content.ts";
import { type HashedFile, sha256Of } from "./hash.ts";
import type { UploadEntry } from "./select.ts";

/** The entries of one batch: all of them, and content only where the server lacks it, read when its turn comes. */
export function* batchEntries(
  top: string,
  entries: readonly UploadEntry[],
  missing: ReadonlySet<string>,
): Generator<BatchEntry, void, undefined> {
  for (const entry of entries) {
    if (entry.kind !== "file" || entry.size === 0 || !missing.has(entry.path)) yield entry;
    else yield { ...entry, content: unchangedWhole(top, entry) ?? unchangedContent(top, entry) };
  }
}

/** All of the content that was hashed; undefined when it is not small, or not the same any more. */
function unchangedWhole(top: string, { path, size, sha256 }: HashedFile): Uint8Array | undefined {
  try {
    const content = readSmall(top, path, size);
    return content !== undefined && sha256Of(content) === sha256 ? content : undefined;
  } catch {
    return undefined;
  }
}

/** The content that was hashed, or an error: two halves of two versions are nobody's file. */
async function* unchangedContent(top: string, entry: HashedFile): AsyncGenerator<Uint8Array> {
  await using file = await openContent(top, entry.path).catch(() => {
    throw contentChanged(entry.path);
  });
  const digest = createHash("sha256");
  let sent = 0;
  for await (const piece of piecesOf(file, entry.size)) {
    sent += piece.length;
    if (sent > entry.size) throw contentChanged(entry.path);
    digest.update(piece);
    yield piece;
  }
  if (sent !== entry.size || digest.digest("hex") !== entry.sha256) throw contentChanged(entry.path);
}
