import type { CodebaseMetadata, CodebaseRecord } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";

interface CodebaseRow {
  readonly number: number;
  readonly id: string;
  readonly name: string;
  readonly owner_id: string;
  readonly size: number;
  readonly file_count: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly version: number;
}

type Methods = "insertCodebase" | "codebase" | "listCodebases" | "deleteCodebase" | "ownerUsage";

export function codebaseMethods(database: Database): Immediate<Pick<CodebaseMetadata, Methods>> {
  return {
    insertCodebase(record) {
      database.insert("codebases", {
        id: record.id,
        name: record.name,
        owner_id: record.ownerId,
        size: record.size,
        file_count: record.fileCount,
        created_at: record.createdAtMs,
        updated_at: record.updatedAtMs,
        version: record.version,
      });
    },
    codebase: (id) => codebaseRecord(database, id),
    listCodebases({ ownerId, after, limit }) {
      const conditions = [
        ...(ownerId === undefined ? [] : ["owner_id = :owner"]),
        ...(after === undefined ? [] : ["(created_at, id) > (:after_time, :after_id)"]),
      ];
      return database
        .select<CodebaseRow>(`SELECT * FROM codebases ${where(conditions)} ORDER BY created_at, id LIMIT :limit`, {
          limit,
          ...(ownerId === undefined ? {} : { owner: ownerId }),
          ...(after === undefined ? {} : { after_time: after[0], after_id: after[1] }),
        })
        .map(toRecord);
    },
    deleteCodebase(id) {
      database.run("DELETE FROM codebases WHERE id = ?", id);
    },
    ownerUsage(ownerId) {
      const usage = database.get<{ codebases: number; size: number; files: number; directories: number }>(
        `SELECT count(*) AS codebases, coalesce(sum(size), 0) AS size, coalesce(sum(file_count), 0) AS files,
           coalesce(sum(directory_count), 0) AS directories
         FROM codebases WHERE owner_id = ?`,
        ownerId,
      );
      return {
        codebases: usage?.codebases ?? 0,
        size: usage?.size ?? 0,
        fileCount: usage?.files ?? 0,
        directoryCount: usage?.directories ?? 0,
      };
    },
  };
}

export function codebaseRecord(database: Database, id: string): CodebaseRecord | undefined {
  const row = database.get<CodebaseRow>("SELECT * FROM codebases WHERE id = ?", id);
  return row && toRecord(row);
}

/** The number that the other tables know a codebase by; none has the number undefined. */
export function codebaseNumber(database: Database, id: string): number | undefined {
  return database.get<{ number: number }>("SELECT number FROM codebases WHERE id = ?", id)?.number;
}

export function where(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
}

function toRecord(row: CodebaseRow): CodebaseRecord {
  return {
    id: row.id,
    name: row.name,
    ownerId: row.owner_id,
    size: row.size,
    fileCount: row.file_count,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    version: row.version,
  };
}
