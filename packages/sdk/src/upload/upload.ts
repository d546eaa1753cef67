import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { UploadError } from "../errors.ts";
import type { CallOptions, UploadDirectoryOptions } from "../model/options.ts";
import type { BatchResult, DirectoryUploadResult } from "../model/records.ts";
import type { BatchEntry, BatchOptions, ManifestEntry } from "../model/requests.ts";
import { contentChanged, type HashedFile, openContent, piecesOf, readSmall, sha256Of } from "./hash.ts";
import { type Selection, selectEntries, type UploadEntry } from "./select.ts";

/** Who takes files: the two calls of a client that uploading is made of. */
export interface UploadTarget {
  compareManifest(codebaseId: string, entries: Iterable<ManifestEntry>, options?: CallOptions): Promise<string[]>;
  batchUpload(codebaseId: string, entries: Iterable<BatchEntry>, options?: BatchOptions): Promise<BatchResult>;
}

/** A directory as one version of a codebase. */
export async function uploadDirectory(
  target: UploadTarget,
  codebaseId: string,
  directory: string,
  options: UploadDirectoryOptions = {},
): Promise<DirectoryUploadResult> {
  await expectDirectory(directory);
  const selection = await selectEntries(directory, options);
  return await sendEntries(target, codebaseId, directory, selection, options);
}

/** Sends what the server lacks of a selection, and makes one version of it all. */
export async function sendEntries(
  target: UploadTarget,
  codebaseId: string,
  directory: string,
  { entries, bytes, leftOut }: Selection,
  { replaceAll, message, baseVersion, onProgress, signal }: UploadDirectoryOptions = {},
): Promise<DirectoryUploadResult> {
  const withContent = entries.filter((entry) => entry.kind === "file" && entry.size > 0);
  const missing = new Set(await target.compareManifest(codebaseId, withContent, { signal }));
  const bytesSent = entries.reduce(
    (sum, entry) => sum + (entry.kind === "file" && missing.has(entry.path) ? entry.size : 0),
    0,
  );
  let doneBytes = 0;
  const result = await target.batchUpload(codebaseId, batchEntries(directory, entries, missing), {
    replaceAll,
    message,
    baseVersion,
    signal,
    onBytes(count) {
      doneBytes += count;
      onProgress?.({ phase: "uploading", doneBytes, totalBytes: bytesSent, files: missing.size });
    },
  });
  const files = entries.filter(({ kind }) => kind !== "directory").length;
  return { ...result, files, bytes, filesSent: missing.size, bytesSent, leftOut };
}

/** An empty upload of a directory that is not there would, with `replaceAll`, empty the codebase. */
async function expectDirectory(directory: string): Promise<void> {
  const status = await stat(directory).catch((error: Error) => {
    throw new UploadError(`cannot upload ${directory}: ${error.message}`, { code: "UPLOAD_FAILED", cause: error });
  });
  if (status.isDirectory()) return;
  throw new UploadError(`cannot upload ${directory}: it is not a directory`, { code: "UPLOAD_FAILED" });
}

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
