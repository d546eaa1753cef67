import { UploadError } from "../errors.ts";
import type { UploadDirectoryOptions } from "../model/options.ts";
import { type HashedFile, hashFiles } from "./hash.ts";
import { type LocalEntry, type Walk, walk } from "./walk.ts";

/** What will be uploaded: files are known by their hashes. */
export type UploadEntry = Exclude<LocalEntry, { kind: "file" }> | HashedFile;

export type SelectOptions = Pick<
  UploadDirectoryOptions,
  "ignoreFiles" | "ignore" | "includeGit" | "skipUnreadable" | "onProgress" | "signal"
>;

/** What a directory has for a codebase. */
export interface Selection {
  readonly entries: readonly UploadEntry[];
  readonly bytes: number;
  /** What stays behind and why, each as a sentence. */
  readonly leftOut: readonly string[];
}

/** Walks and hashes. Throws when something cannot be read, unless that is to be left out. */
export async function selectEntries(top: string, options: SelectOptions = {}): Promise<Selection> {
  const { ignoreFiles = true, ignore = [], includeGit = false, skipUnreadable = false, onProgress, signal } = options;
  const found = await walk(top, { ignoreFiles, ignore, includeGit, signal });
  const files = found.entries.filter((entry) => entry.kind === "file");
  const totalBytes = sum(files.map(({ size }) => size));
  let doneBytes = 0;
  const onBytes = (count: number) => {
    doneBytes += count;
    onProgress?.({ phase: "reading", doneBytes, totalBytes, files: files.length });
  };
  const { hashed, unreadable } = await hashFiles(top, files, { onBytes, signal });
  const refused = [...found.unreadable, ...unreadable];
  if (refused.length > 0 && !skipUnreadable) throw unreadableError(refused);
  return {
    ...inOrder(found, hashed),
    leftOut: [...refused.map((path) => `${path}: cannot be read`), ...found.unsuitable],
  };
}

/** The walk's order, with hashes, and without what could not be read. */
function inOrder(found: Walk, hashed: readonly HashedFile[]) {
  const byPath = new Map(hashed.map((file) => [file.path, file]));
  const entries = found.entries.flatMap((entry) => (entry.kind === "file" ? (byPath.get(entry.path) ?? []) : entry));
  return { entries, bytes: sum(hashed.map(({ size }) => size)) };
}

const NAMED = 10;

function unreadableError(paths: readonly string[]): UploadError {
  const named = paths.slice(0, NAMED).join(", ");
  const more = paths.length > NAMED ? ` and ${paths.length - NAMED} more` : "";
  return new UploadError(`these cannot be read: ${named}${more}`, {
    code: "UPLOAD_FAILED",
    hint: "leave them out with skipUnreadable",
    unreadable: paths,
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
