import type { EntryRecord, VersionChangeRecord, VersionRecord } from "./store.ts";

/** What a codebase, or more than one, has; or by how much a change makes that more. */
export interface Growth {
  readonly bytes: number;
  /** Regular files and symbolic links. */
  readonly files: number;
  readonly directories: number;
}

export function growthOf(changes: readonly Pick<VersionChangeRecord, "before" | "after">[]): Growth {
  let bytes = 0;
  let files = 0;
  let directories = 0;
  for (const { before, after } of changes) {
    bytes += (after?.size ?? 0) - (before?.size ?? 0);
    files += filesIn(after) - filesIn(before);
    directories += Number(after?.kind === "directory") - Number(before?.kind === "directory");
  }
  return { bytes, files, directories };
}

/** 1 for a file or a link, 0 for a directory or nothing. */
export function filesIn(entry: EntryRecord | undefined): number {
  return entry === undefined || entry.kind === "directory" ? 0 : 1;
}

/** Disks give out space in blocks: a million replaced files of one byte are not a megabyte. */
const BLOCK = 4096;
/** About what the record of a changed path takes in the database, its index included. */
const RECORD = 512;

/**
 * What a version keeps. Paths that were not there before cost nothing: each has to go before it can come again, and counts
 * then. What a rename keeps is still there under its new name, and counts when that is replaced.
 */
export function keptBytesOf(
  { origin }: Pick<VersionRecord, "origin">,
  changes: readonly Pick<VersionChangeRecord, "before" | "keptAs">[],
): number {
  let bytes = 0;
  for (const { before, keptAs } of changes) {
    if (before === undefined) continue;
    const hasContent = keptAs !== "" && origin !== "rename";
    bytes += RECORD + (hasContent ? Math.ceil(before.size / BLOCK) * BLOCK : 0);
  }
  return bytes;
}
