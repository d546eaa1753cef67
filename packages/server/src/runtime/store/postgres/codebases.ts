import { CODEBASE_COLUMNS, ENTRY_COLUMNS } from "../columns.ts";
import type { CodebaseMetadata, EntryRecord, OwnerUsage } from "../store.ts";
import type { Database } from "./database.ts";
import { Conditions, Table } from "./table.ts";

export const CODEBASES = new Table("codebases", CODEBASE_COLUMNS);
const ENTRIES = new Table("entries", ENTRY_COLUMNS);

/** Other tables know a codebase by its number. */
export const NUMBER = "(SELECT number FROM codebases WHERE id = $1)";

type Methods =
  | "insertCodebase"
  | "codebase"
  | "listCodebases"
  | "deleteCodebase"
  | "ownerUsage"
  | "entry"
  | "entries"
  | "entriesByHash"
  | "listEntries";

export function codebaseMethods(database: Database): Pick<CodebaseMetadata, Methods> {
  return {
    insertCodebase: (record) => CODEBASES.insert(database, record),
    codebase: (id) => CODEBASES.get(database, "WHERE id = $1", [id]),
    listCodebases: ({ ownerId, after, limit }) =>
      CODEBASES.list(database, new Conditions().add("owner_id = ?", ownerId).after(after), "created_at, id", limit),
    async deleteCodebase(id) {
      await database.run("DELETE FROM codebases WHERE id = $1", [id]);
    },
    async ownerUsage(ownerId) {
      const usage = await database.get<OwnerUsage>(
        `SELECT count(*) AS codebases, coalesce(sum(size), 0)::bigint AS bytes, coalesce(sum(file_count), 0)::bigint AS files,
           coalesce(sum(directory_count), 0)::bigint AS directories
         FROM codebases WHERE owner_id = $1`,
        [ownerId],
      );
      return usage as OwnerUsage; // a count has a row, whatever there is
    },

    entry: (codebaseId, path) => ENTRIES.get(database, `WHERE codebase = ${NUMBER} AND path = $2`, [codebaseId, path]),
    async entries(codebaseId, paths) {
      const rest = `WHERE codebase = ${NUMBER} AND path = ANY($2::text[])`;
      const found = paths.length === 0 ? [] : await ENTRIES.all(database, rest, [codebaseId, paths]);
      const byPath = new Map(found.map((entry) => [entry.path, entry]));
      return paths.map((path) => byPath.get(path));
    },
    async entriesByHash(codebaseId, hashes) {
      const first = `SELECT * FROM entries
        WHERE codebase = ${NUMBER} AND sha256 = asked.hash AND sha256 <> '' ORDER BY path LIMIT 1`;
      const statement = `SELECT ${ENTRIES.selected}
        FROM unnest($2::text[]) AS asked (hash) CROSS JOIN LATERAL (${first}) AS found`;
      const found = hashes.length === 0 ? [] : await ENTRIES.ask(database, statement, [codebaseId, hashes]);
      return new Map(found.map((entry): [string, EntryRecord] => [entry.sha256, entry]));
    },
    async listEntries(codebaseId, { directory, recursive, after = "", limit }) {
      const conditions = new Conditions().add("codebase = (SELECT number FROM codebases WHERE id = ?)", codebaseId);
      if (recursive && directory !== "") {
        // All that is below lies between these two: "0" is the character after "/".
        conditions.add("path > ?", `${directory}/`).add("path < ?", `${directory}0`);
      } else if (!recursive) conditions.add("parent = ?", directory);
      if (after !== "") conditions.add("path > ?", after);
      return await ENTRIES.list(database, conditions, "path", limit);
    },
  };
}
