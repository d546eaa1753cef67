import type { CodebaseMetadata, DroppedVersions, Retention, VersionChangeRecord, VersionRecord } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";

/** Disks give out space in blocks: a million replaced files of one byte are not a megabyte. */
const BLOCK = 4096;
/** About what the record of a changed path takes in the database, its index included. */
const RECORD = 512;

/** So many versions, or changes in them, are dropped at a time. */
const VERSIONS_A_CALL = 256;
const CHANGES_A_CALL = 20_000;

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

interface CodebaseRow {
  readonly number: number;
  readonly version: number;
  readonly kept_bytes: number;
}

/** Old versions that a codebase does not keep. Versions are made one after the other and go from the oldest on: no gaps. */
export function retentionMethods(database: Database): Immediate<Pick<CodebaseMetadata, "dropVersions">> {
  return {
    dropVersions: (codebaseId, keep) =>
      database.write((): DroppedVersions => {
        const codebase = database.get<CodebaseRow>(
          "SELECT number, version, kept_bytes FROM codebases WHERE id = ?",
          codebaseId,
        );
        const oldest = codebase && oldestVersion(database, codebase.number);
        if (codebase === undefined || oldest === undefined) {
          return { released: [], oldest: 0, keptBytes: 0, hasMore: false };
        }
        const goal = oldestToKeep(database, codebase, oldest, keep);
        if (goal === oldest) return { released: [], oldest, keptBytes: codebase.kept_bytes, hasMore: false };
        const reached = partOfTheWay(database, codebase.number, oldest, goal);
        return { ...drop(database, codebase, reached), hasMore: reached < goal };
      }),
  };
}

function oldestVersion(database: Database, codebase: number): number | undefined {
  const sql = "SELECT min(version) AS oldest FROM versions WHERE codebase = ?";
  return database.get<{ oldest: number | null }>(sql, codebase)?.oldest ?? undefined;
}

function oldestToKeep(database: Database, codebase: CodebaseRow, oldest: number, keep: Retention): number {
  const byCount = keep.versions === 0 ? oldest : Math.max(oldest, codebase.version - keep.versions + 1);
  if (keep.bytes === 0 || codebase.kept_bytes <= keep.bytes) return byCount;
  // A version needs what those after it replaced, and not what it replaced itself.
  let [bytes, byBytes] = [codebase.kept_bytes, oldest];
  const rows = database.prepare(
    "SELECT version, kept_bytes FROM versions WHERE codebase = ? AND version < ? ORDER BY version",
  );
  for (const row of rows.iterate(codebase.number, codebase.version)) {
    if (bytes <= keep.bytes) break;
    byBytes = Number(row.version);
    bytes -= Number(row.kept_bytes);
  }
  return Math.max(byCount, byBytes);
}

/** The version up to which one call drops, one at least. */
function partOfTheWay(database: Database, codebase: number, oldest: number, goal: number): number {
  const latest = Math.min(goal, oldest + VERSIONS_A_CALL);
  const sql = "SELECT version FROM changes WHERE codebase = ? AND version < ? ORDER BY version LIMIT 1 OFFSET ?";
  const crowded = database.get<{ version: number }>(sql, codebase, latest, CHANGES_A_CALL)?.version;
  return crowded === undefined ? latest : Math.max(oldest + 1, crowded);
}

function drop(database: Database, codebase: CodebaseRow, oldest: number): Omit<DroppedVersions, "hasMore"> {
  const { number } = codebase;
  const sql = "SELECT version, kept_bytes FROM versions WHERE codebase = ? AND version <= ? AND kept_bytes > 0";
  const releasing = database.all<{ version: number; kept_bytes: number }>(sql, number, oldest);
  const bytes = releasing.reduce((sum, { kept_bytes }) => sum + kept_bytes, 0);
  database.run("DELETE FROM changes WHERE codebase = ? AND version < ?", number, oldest);
  database.run("DELETE FROM versions WHERE codebase = ? AND version < ?", number, oldest);
  database.run("UPDATE versions SET kept_bytes = 0 WHERE codebase = ? AND version = ?", number, oldest);
  database.run("UPDATE codebases SET kept_bytes = kept_bytes - ? WHERE number = ?", bytes, number);
  return { released: releasing.map(({ version }) => version), oldest, keptBytes: codebase.kept_bytes - bytes };
}
