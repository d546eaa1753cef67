import { VERSION_COLUMNS } from "../columns.ts";
import { type ChangeRow, packEntry, toChange } from "../packed.ts";
import type { CodebaseMetadata, VersionChangeRecord, VersionRecord } from "../store.ts";
import { codebaseNumber } from "./codebases.ts";
import type { Database } from "./database.ts";
import { belowDirectory } from "./entries.ts";
import type { Immediate } from "./protocol.ts";
import { type Filter, matching, Table, values, where } from "./table.ts";

const VERSIONS = new Table("versions", VERSION_COLUMNS);

type Methods = "version" | "listVersions" | "changesOf" | "firstChangesAfter";

export function versionMethods(database: Database): Immediate<Pick<CodebaseMetadata, Methods>> {
  const listed = (codebaseId: string, more: readonly Filter[], limit: number): VersionRecord[] => {
    const ofCodebase: Filter = ["codebase = (SELECT number FROM codebases WHERE id = :id)", { id: codebaseId }];
    const found = VERSIONS.list(database, [ofCodebase, ...more], "version DESC", limit);
    return found.map((record) => ({ codebaseId, ...record }));
  };
  return {
    version: (codebaseId, version) => listed(codebaseId, matching("version", version), 1)[0],
    listVersions: (codebaseId, { before, limit }) => listed(codebaseId, matching("version", before, "<"), limit),
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
        const filters: Filter[] = [
          ...matching("codebase", codebase),
          ...matching("version", version, ">"),
          ...matching("path", path),
          ...matching("path", below?.from, ">", "from_path"),
          ...matching("path", below?.to, "<", "to_path"),
        ];
        const source = path === undefined && below === undefined ? "changes" : "changes INDEXED BY changes_by_path";
        // Beside min(), SQLite takes the other columns from the row that has the minimum.
        const sql = `SELECT path, min(version) AS version, before, after, kept_as FROM ${source}
                     ${where(filters)} GROUP BY path ORDER BY path`;
        return database.all<ChangeRow>(sql, values(filters, {})).map(toChange);
      }),
  };
}

export function insertVersion(
  database: Database,
  codebase: number,
  { codebaseId: _ofTheCodebase, ...record }: VersionRecord,
  keptBytes: number,
): void {
  VERSIONS.insert(database, record, { codebase, kept_bytes: keptBytes });
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
