import { CHANGES_A_CALL, type KeptVersion, oldestToKeep, VERSIONS_A_CALL } from "../retention.ts";
import type { CodebaseMetadata, DroppedVersions, Retention } from "../store.ts";
import type { Database } from "./database.ts";

interface CodebaseRow {
  readonly number: number;
  readonly version: number;
  readonly kept_bytes: number;
  readonly oldest: number | null;
}

/** Old versions that a codebase does not keep. Versions are made one after the other and go from the oldest on: no gaps. */
export function retentionMethods(database: Database): Pick<CodebaseMetadata, "dropVersions"> {
  return {
    async dropVersions(codebaseId, keep) {
      for (;;) {
        const dropped = await dropSome(database, codebaseId, keep);
        if (dropped !== undefined) return dropped;
      }
    },
  };
}

/** Undefined: the codebase was changed meanwhile. */
async function dropSome(database: Database, codebaseId: string, keep: Retention): Promise<DroppedVersions | undefined> {
  const codebase = await database.get<CodebaseRow>(
    `SELECT number, version, kept_bytes, (SELECT min(version) FROM versions WHERE codebase = number) AS oldest
     FROM codebases WHERE id = $1`,
    [codebaseId],
  );
  const oldest = codebase?.oldest ?? undefined;
  if (codebase === undefined || oldest === undefined) {
    return { released: [], oldest: 0, keptBytes: 0, hasMore: false };
  }
  const { number, version, kept_bytes: keptBytes } = codebase;
  const isCrowded = keep.bytes > 0 && keptBytes > keep.bytes;
  const kept = isCrowded ? await keptBy(database, codebase) : [];
  const goal = oldestToKeep({ version, keptBytes, oldest, kept }, keep);
  if (goal === oldest) return { released: [], oldest, keptBytes, hasMore: false };

  const reached = await partOfTheWay(database, number, oldest, goal);
  const releasing = await database.all<KeptVersion>(
    "SELECT version, kept_bytes FROM versions WHERE codebase = $1 AND version <= $2 AND kept_bytes > 0 ORDER BY version",
    [number, reached],
  );
  const left = keptBytes - releasing.reduce((sum, row) => sum + row.kept_bytes, 0);
  const done = await database.get(
    `WITH kept AS (
       UPDATE codebases SET kept_bytes = $4
       WHERE number = $1 AND version = $2 AND kept_bytes = $3 RETURNING number
     ), gone_changes AS (
       DELETE FROM changes USING kept WHERE changes.codebase = kept.number AND changes.version < $5
     ), gone_versions AS (
       DELETE FROM versions USING kept WHERE versions.codebase = kept.number AND versions.version < $5
     ), released AS (
       UPDATE versions SET kept_bytes = 0 FROM kept WHERE versions.codebase = kept.number AND versions.version = $5
     )
     SELECT FROM kept`,
    [number, version, keptBytes, left, reached],
  );
  if (done === undefined) return undefined;
  return { released: releasing.map((row) => row.version), oldest: reached, keptBytes: left, hasMore: reached < goal };
}

/** From the oldest on, as many as tell whether one call can drop what must go. */
async function keptBy(database: Database, { number, version }: CodebaseRow): Promise<readonly KeptVersion[]> {
  return await database.all<KeptVersion>(
    "SELECT version, kept_bytes FROM versions WHERE codebase = $1 AND version < $2 ORDER BY version LIMIT $3",
    [number, version, VERSIONS_A_CALL + 2],
  );
}

/** The version up to which one call drops, one at least. */
async function partOfTheWay(database: Database, codebase: number, oldest: number, goal: number): Promise<number> {
  const latest = Math.min(goal, oldest + VERSIONS_A_CALL);
  const crowded = await database.get<{ version: number }>(
    "SELECT version FROM changes WHERE codebase = $1 AND version < $2 ORDER BY version LIMIT 1 OFFSET $3",
    [codebase, latest, CHANGES_A_CALL],
  );
  return crowded === undefined ? latest : Math.max(oldest + 1, crowded.version);
}
