import { CHANGES_A_CALL, type KeptVersion, oldestToKeep, VERSIONS_A_CALL } from "../retention.ts";
import type { CodebaseMetadata, DroppedVersions } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";

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
        const { version, kept_bytes: keptBytes } = codebase;
        const goal = oldestToKeep({ version, keptBytes, oldest, kept: keptVersions(database, codebase) }, keep);
        if (goal === oldest) return { released: [], oldest, keptBytes, hasMore: false };
        const reached = partOfTheWay(database, codebase.number, oldest, goal);
        return { ...drop(database, codebase, reached), hasMore: reached < goal };
      }),
  };
}

function oldestVersion(database: Database, codebase: number): number | undefined {
  const sql = "SELECT min(version) AS oldest FROM versions WHERE codebase = ?";
  return database.get<{ oldest: number | null }>(sql, codebase)?.oldest ?? undefined;
}

/** From the oldest on, without the newest. */
function* keptVersions(database: Database, { number, version }: CodebaseRow): Generator<KeptVersion> {
  const rows = database.prepare(
    "SELECT version, kept_bytes FROM versions WHERE codebase = ? AND version < ? ORDER BY version",
  );
  for (const row of rows.iterate(number, version)) yield row as unknown as KeptVersion;
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
