import type { EntryRecord, JournalRecord, VersionChangeRecord } from "./store.ts";

// How databases keep what has no table of its own.

/** A change of a version. `before` and `after` are JSON arrays: kind, mode, size, sha256, target, modified_at, version. */
export interface ChangeRow {
  readonly version: number;
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
  readonly kept_as: string;
}

export function toChange(row: ChangeRow): VersionChangeRecord {
  return {
    version: row.version,
    path: row.path,
    before: unpackEntry(row.path, row.before),
    after: unpackEntry(row.path, row.after),
    keptAs: row.kept_as,
  };
}

type PackedEntry = [EntryRecord["kind"], number, number, string, string, number, number];

export function packEntry(entry: EntryRecord | undefined): string | null {
  if (entry === undefined) return null;
  const { kind, mode, size, sha256, target, modifiedAtMs, version } = entry;
  return JSON.stringify([kind, mode, size, sha256, target, modifiedAtMs, version] satisfies PackedEntry);
}

function unpackEntry(path: string, text: string | null): EntryRecord | undefined {
  if (text === null) return undefined;
  const [kind, mode, size, sha256, target, modifiedAtMs, version] = JSON.parse(text) as PackedEntry;
  return { path, kind, mode, size, sha256, target, modifiedAtMs, version };
}

export function datedBy(journal: JournalRecord, createdAtMs: number): JournalRecord {
  return { ...journal, version: { ...journal.version, createdAtMs } };
}
