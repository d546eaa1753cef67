import type { CodebaseMetadata, EntryRecord, VersionChangeRecord, VersionOrigin, VersionRecord } from "../store.ts";
import { codebaseNumber, where } from "./codebases.ts";
import type { Database } from "./database.ts";
import { belowDirectory } from "./entries.ts";
import type { Immediate } from "./protocol.ts";

interface VersionRow {
  readonly version: number;
  readonly origin: VersionOrigin;
  readonly sandbox_id: string;
  readonly message: string;
  readonly created_at: number;
  readonly files_changed: number;
  readonly size: number;
  readonly file_count: number;
  readonly conflicts: string;
}

interface ChangeRow {
  readonly version: number;
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
  readonly kept_as: string;
}

type Methods = "version" | "listVersions" | "changesOf" | "firstChangesAfter";

export function versionMethods(database: Database): Immediate<Pick<CodebaseMetadata, Methods>> {
  return {
    version: (codebaseId, version) =>
      selectVersions(database, codebaseId, { conditions: ["version = :version"], values: { version }, limit: 1 })[0],
    listVersions: (codebaseId, { before, limit }) =>
      before === undefined
        ? selectVersions(database, codebaseId, { conditions: [], values: {}, limit })
        : selectVersions(database, codebaseId, { conditions: ["version < :before"], values: { before }, limit }),
    changesOf: (codebaseId, version) =>
      database
        .all<ChangeRow>(
          `SELECT version, path, before, after, kept_as FROM changes
           WHERE codebase = (SELECT number FROM codebases WHERE id = ?) AND version = ? ORDER BY path`,
          codebaseId,
          version,
        )
        .map(toChange),
    firstChangesAfter: (codebaseId, version, { path, directory }) =>
      database.read(() => {
        const codebase = codebaseNumber(database, codebaseId);
        if (codebase === undefined) return [];
        const below = directory === undefined || directory === "" ? undefined : belowDirectory(directory);
        const conditions = [
          "codebase = :codebase",
          "version > :version",
          ...(path === undefined ? [] : ["path = :path"]),
          ...(below === undefined ? [] : ["path > :from_path", "path < :to_path"]),
        ];
        const source = path === undefined && below === undefined ? "changes" : "changes INDEXED BY changes_by_path";
        // Beside min(), SQLite takes the other columns from the row that has the minimum.
        const sql = `SELECT path, min(version) AS version, before, after, kept_as FROM ${source}
                     ${where(conditions)} GROUP BY path ORDER BY path`;
        const values = {
          codebase,
          version,
          ...(path === undefined ? {} : { path }),
          ...(below === undefined ? {} : { from_path: below.from, to_path: below.to }),
        };
        return database.select<ChangeRow>(sql, values).map(toChange);
      }),
  };
}

function selectVersions(
  database: Database,
  codebaseId: string,
  query: {
    readonly conditions: readonly string[];
    readonly values: Readonly<Record<string, number>>;
    readonly limit: number;
  },
): VersionRecord[] {
  const conditions = ["codebase = (SELECT number FROM codebases WHERE id = :id)", ...query.conditions];
  return database
    .select<VersionRow>(`SELECT * FROM versions ${where(conditions)} ORDER BY version DESC LIMIT :limit`, {
      id: codebaseId,
      limit: query.limit,
      ...query.values,
    })
    .map((row) => toVersion(codebaseId, row));
}

export function insertVersion(database: Database, codebase: number, record: VersionRecord, keptBytes: number): void {
  database.insert("versions", {
    codebase,
    version: record.version,
    origin: record.origin,
    sandbox_id: record.sandboxId,
    message: record.message,
    created_at: record.createdAtMs,
    files_changed: record.filesChanged,
    size: record.size,
    file_count: record.fileCount,
    conflicts: JSON.stringify(record.conflicts),
    kept_bytes: keptBytes,
  });
}

/** The statement is looked up once for all changes. */
export function changeWriter(database: Database, codebase: number): (change: VersionChangeRecord) => void {
  const insert = database.prepare(
    "INSERT INTO changes (codebase, version, path, before, after, kept_as) VALUES (?, ?, ?, ?, ?, ?)",
  );
  return ({ version, path, before, after, keptAs }) => {
    insert.run(codebase, version, path, packEntry(before), packEntry(after), keptAs);
  };
}

function toVersion(codebaseId: string, row: VersionRow): VersionRecord {
  return {
    codebaseId,
    version: row.version,
    origin: row.origin,
    sandboxId: row.sandbox_id,
    message: row.message,
    createdAtMs: row.created_at,
    filesChanged: row.files_changed,
    size: row.size,
    fileCount: row.file_count,
    conflicts: JSON.parse(row.conflicts) as VersionRecord["conflicts"],
  };
}

function toChange(row: ChangeRow): VersionChangeRecord {
  return {
    version: row.version,
    path: row.path,
    before: unpackEntry(row.path, row.before),
    after: unpackEntry(row.path, row.after),
    keptAs: row.kept_as,
  };
}

type PackedEntry = [EntryRecord["kind"], number, number, string, string, number, number];

function packEntry(entry: EntryRecord | undefined): string | null {
  if (entry === undefined) return null;
  const { kind, mode, size, sha256, target, modifiedAtMs, version } = entry;
  return JSON.stringify([kind, mode, size, sha256, target, modifiedAtMs, version] satisfies PackedEntry);
}

function unpackEntry(path: string, text: string | null): EntryRecord | undefined {
  if (text === null) return undefined;
  const [kind, mode, size, sha256, target, modifiedAtMs, version] = JSON.parse(text) as PackedEntry;
  return { path, kind, mode, size, sha256, target, modifiedAtMs, version };
}
