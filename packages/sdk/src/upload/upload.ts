import { stat } from "node:fs/promises";
import { UploadError } from "../errors.ts";
import type { CallOptions, UploadDirectoryOptions } from "../model/options.ts";
import type { BatchResult, DirectoryUploadResult } from "../model/records.ts";
import type { BatchEntry, BatchOptions, ManifestEntry } from "../model/requests.ts";
import { batchEntries } from "./batch.ts";
import { type Selection, selectEntries } from "./select.ts";

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
