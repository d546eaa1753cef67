import { ENTRY_COLUMNS } from "../columns.ts";
import type { CodebaseMetadata, EntryRecord } from "../store.ts";
import { codebaseNumber } from "./codebases.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";
import { Table } from "./table.ts";

const ENTRIES = new Table("entries", ENTRY_COLUMNS);

const BY_PATH = "WHERE codebase = ? AND path = ?";
const BELOW = "WHERE codebase = ? AND path > max(?, ?) AND path < ? ORDER BY path LIMIT ?";
// Left to itself, SQLite would rather walk the whole codebase by path, for the order, than look into these indexes. The
// second one leaves out entries without content, which its condition has to repeat.
const CHILDREN = `INDEXED BY entries_by_parent
  WHERE codebase = ? AND parent = ? AND path > ? ORDER BY path LIMIT ?`;
const BY_HASH = `INDEXED BY entries_by_hash
  WHERE codebase = ? AND sha256 = ? AND sha256 <> '' ORDER BY path LIMIT 1`;

type Methods = "entry" | "entries" | "entriesByHash" | "listEntries";

export function entryMethods(database: Database): Immediate<Pick<CodebaseMetadata, Methods>> {
  const find = (codebase: number, path: string): EntryRecord | undefined =>
    ENTRIES.get(database, BY_PATH, codebase, path);
  return {
    entry: (codebaseId, path) =>
      database.read(() => {
        const codebase = codebaseNumber(database, codebaseId);
        return codebase === undefined ? undefined : find(codebase, path);
      }),
    entries: (codebaseId, paths) =>
      database.read(() => {
        const codebase = codebaseNumber(database, codebaseId);
        return paths.map((path) => (codebase === undefined ? undefined : find(codebase, path)));
      }),
    entriesByHash: (codebaseId, hashes) =>
      database.read(() => {
        const found = new Map<string, EntryRecord>();
        const codebase = codebaseNumber(database, codebaseId);
        if (codebase === undefined) return found;
        for (const hash of hashes) {
          const entry = ENTRIES.get(database, BY_HASH, codebase, hash);
          if (entry !== undefined) found.set(hash, entry);
        }
        return found;
      }),
    listEntries: (codebaseId, { directory, recursive, after = "", limit = -1 }) =>
      database.read(() => {
        const codebase = codebaseNumber(database, codebaseId);
        if (codebase === undefined) return [];
        if (!recursive) return ENTRIES.all(database, CHILDREN, codebase, directory, after, limit);
        const below = belowDirectory(directory);
        return ENTRIES.all(database, BELOW, codebase, below.from, after, below.to, limit);
      }),
  };
}

/** All that is below a directory lies between these two, exclusively: "0" is the character after "/". */
export function belowDirectory(directory: string): { readonly from: string; readonly to: string | Uint8Array } {
  // Any blob is greater than any text.
  return directory === "" ? { from: "", to: new Uint8Array() } : { from: `${directory}/`, to: `${directory}0` };
}

/** Writes entries of one codebase; the statements are looked up once for all of them. */
export function entryWriter(
  database: Database,
  codebase: number,
): { put(entry: EntryRecord): void; remove(path: string): void } {
  const put = database.prepare(
    `INSERT INTO entries (codebase, parent, path, kind, mode, size, sha256, target, modified_at, version)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET kind = excluded.kind, mode = excluded.mode, size = excluded.size, sha256 = excluded.sha256,
       target = excluded.target, modified_at = excluded.modified_at, version = excluded.version`,
  );
  const remove = database.prepare("DELETE FROM entries WHERE codebase = ? AND path = ?");
  return {
    put({ path, kind, mode, size, sha256, target, modifiedAtMs, version }) {
      const parent = path.slice(0, Math.max(0, path.lastIndexOf("/")));
      put.run(codebase, parent, path, kind, mode, size, sha256, target, modifiedAtMs, version);
    },
    remove(path) {
      remove.run(codebase, path);
    },
  };
}
