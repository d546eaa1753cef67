import { CODEBASE_COLUMNS } from "../columns.ts";
import type { CodebaseMetadata, CodebaseRecord, OwnerUsage } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";
import { afterKey, matching, Table } from "./table.ts";

const CODEBASES = new Table("codebases", CODEBASE_COLUMNS);

type Methods = "insertCodebase" | "codebase" | "listCodebases" | "deleteCodebase" | "ownerUsage";

export function codebaseMethods(database: Database): Immediate<Pick<CodebaseMetadata, Methods>> {
  return {
    insertCodebase: (record) => CODEBASES.insert(database, record),
    codebase: (id) => codebaseRecord(database, id),
    listCodebases({ ownerId, after, limit }) {
      const filters = [...matching("owner_id", ownerId), ...afterKey(after)];
      return CODEBASES.list(database, filters, "created_at, id", limit);
    },
    deleteCodebase(id) {
      database.run("DELETE FROM codebases WHERE id = ?", id);
    },
    ownerUsage(ownerId) {
      const usage = database.get<OwnerUsage>(
        `SELECT count(*) AS codebases, coalesce(sum(size), 0) AS bytes, coalesce(sum(file_count), 0) AS files,
           coalesce(sum(directory_count), 0) AS directories
         FROM codebases WHERE owner_id = ?`,
        ownerId,
      );
      return usage as OwnerUsage; // a count has a row, whatever there is
    },
  };
}

export function codebaseRecord(database: Database, id: string): CodebaseRecord | undefined {
  return CODEBASES.get(database, "WHERE id = ?", id);
}

/** The number that the other tables know a codebase by; none has the number undefined. */
export function codebaseNumber(database: Database, id: string): number | undefined {
  return database.get<{ number: number }>("SELECT number FROM codebases WHERE id = ?", id)?.number;
}
