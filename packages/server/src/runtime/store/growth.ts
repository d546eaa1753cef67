import type { EntryRecord, VersionChangeRecord } from "./store.ts";

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
