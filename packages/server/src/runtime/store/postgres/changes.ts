import { Records, VERSION_COLUMNS } from "../columns.ts";
import { growthOf, keptBytesOf } from "../growth.ts";
import { type ChangeRow, datedBy, packEntry, toChange } from "../packed.ts";
import type { CodebaseMetadata, JournalRecord, VersionRecord } from "../store.ts";
import { CODEBASES, NUMBER } from "./codebases.ts";
import type { Database } from "./database.ts";
import { Conditions, Table } from "./table.ts";

const VERSIONS = new Table("versions", VERSION_COLUMNS);
const VERSION_ROWS = new Records(VERSION_COLUMNS);

type Methods =
  | "beginChange"
  | "finishChange"
  | "settleChange"
  | "unsettledChanges"
  | "version"
  | "listVersions"
  | "changesOf"
  | "firstChangesAfter";

/** Changes of a codebase: the journal, what it does to the manifest, and the versions that come of it. */
export function changeMethods(database: Database): Pick<CodebaseMetadata, Methods> {
  const versions = async (codebaseId: string, more: Conditions, limit: number): Promise<VersionRecord[]> => {
    const ofCodebase = more.add("codebase = (SELECT number FROM codebases WHERE id = ?)", codebaseId);
    const found = await VERSIONS.list(database, ofCodebase, "version DESC", limit);
    return found.map((record) => ({ codebaseId, ...record }));
  };
  return {
    async beginChange(journal) {
      const { codebaseId, version } = journal;
      const begun = await database.run(
        `INSERT INTO journals (codebase, version, journal) SELECT number, $2, $3 FROM codebases WHERE id = $1
         ON CONFLICT DO NOTHING`,
        [codebaseId, version.version, JSON.stringify(journal)],
      );
      if (begun > 0) return;
      const exists = await database.get("SELECT FROM codebases WHERE id = $1", [codebaseId]);
      if (exists === undefined) throw new Error(`there is no codebase ${codebaseId}`);
      throw new Error(`codebase ${codebaseId} has an unsettled change`);
    },
    async finishChange(codebaseId, finishedAtMs) {
      const statement = `SELECT journal FROM journals WHERE codebase = ${NUMBER}`;
      const row = await database.get<{ journal: string }>(statement, [codebaseId]);
      const journal = row && (JSON.parse(row.journal) as JournalRecord);
      const dated = journal && finishedAtMs !== undefined ? datedBy(journal, finishedAtMs) : journal;
      const [record] = dated === undefined ? [] : await carryOut(database, dated);
      if (record === undefined) throw new Error(`codebase ${codebaseId} has no unfinished change`);
      return record;
    },
    async settleChange(codebaseId) {
      await database.run(
        `DELETE FROM journals USING codebases
         WHERE id = $1 AND number = journals.codebase AND journals.version = codebases.version`,
        [codebaseId],
      );
    },
    async unsettledChanges() {
      const rows = await database.all<{ journal: string }>("SELECT journal FROM journals ORDER BY codebase");
      return rows.map(({ journal }) => JSON.parse(journal) as JournalRecord);
    },

    version: async (codebaseId, version) =>
      (await versions(codebaseId, new Conditions().add("version = ?", version), 1))[0],
    listVersions: (codebaseId, { before, limit }) =>
      versions(codebaseId, new Conditions().add("version < ?", before), limit),
    async changesOf(codebaseId, version) {
      const rows = await database.all<ChangeRow>(
        `SELECT version, path, before, after, kept_as FROM changes WHERE codebase = ${NUMBER} AND version = $2 ORDER BY path`,
        [codebaseId, version],
      );
      return rows.map(toChange);
    },
    async firstChangesAfter(codebaseId, version, { path, directory = "" }) {
      const conditions = new Conditions()
        .add("codebase = (SELECT number FROM codebases WHERE id = ?)", codebaseId)
        .add("version > ?", version)
        .add("path = ?", path);
      if (directory !== "") conditions.add("path > ?", `${directory}/`).add("path < ?", `${directory}0`);
      const rows = await database.all<ChangeRow>(
        `SELECT DISTINCT ON (path) version, path, before, after, kept_as FROM changes ${conditions} ORDER BY path, version`,
        conditions.values,
      );
      return rows.map(toChange);
    },
  };
}

/**
 * All of a change in one statement, which does nothing when the codebase has the version already, or another journal. Gives
 * the codebase as it is then, or nothing.
 */
async function carryOut(database: Database, { codebaseId, version, changes }: JournalRecord) {
  const removed = changes.filter(({ after }) => after === undefined).map(({ path }) => path);
  const put = changes.flatMap(({ after }) => (after === undefined ? [] : [after]));
  const { bytes, files, directories } = growthOf(changes);
  const keptBytes = keptBytesOf(version, changes);
  const { codebaseId: _ofTheCodebase, ...record } = version;
  const made = { ...VERSION_ROWS.row(record), kept_bytes: keptBytes };
  const names = Object.keys(made);
  const values = [
    ...[codebaseId, version.version, version.createdAtMs, bytes, files, directories, keptBytes],
    removed,
    ...[
      put.map(({ path }) => path.slice(0, Math.max(0, path.lastIndexOf("/")))),
      ...(["path", "kind", "mode", "size", "sha256", "target", "modifiedAtMs", "version"] as const).map((member) =>
        put.map((entry) => entry[member]),
      ),
    ],
    ...[
      changes.map((change) => change.version),
      changes.map(({ path }) => path),
      changes.map(({ before }) => packEntry(before)),
      changes.map(({ after }) => packEntry(after)),
      changes.map(({ keptAs }) => keptAs),
    ],
  ];
  const places = names.map((_, at) => `$${values.length + at + 1}`).join(", ");
  const statement = `
    WITH changed AS (
      UPDATE codebases SET version = $2, updated_at = $3, size = size + $4, file_count = file_count + $5,
        directory_count = directory_count + $6, kept_bytes = kept_bytes + $7
      WHERE id = $1 AND version < $2
        AND EXISTS (SELECT FROM journals WHERE journals.codebase = codebases.number AND journals.version = $2)
      RETURNING *
    ), removed AS (
      DELETE FROM entries USING changed WHERE entries.codebase = changed.number AND entries.path = ANY($8::text[])
    ), put AS (
      INSERT INTO entries (codebase, parent, path, kind, mode, size, sha256, target, modified_at, version)
      SELECT changed.number, given.* FROM changed, unnest(
        $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::text[], $15::text[], $16::bigint[], $17::bigint[]
      ) AS given
      ON CONFLICT (codebase, path) DO UPDATE SET kind = excluded.kind, mode = excluded.mode, size = excluded.size,
        sha256 = excluded.sha256, target = excluded.target, modified_at = excluded.modified_at, version = excluded.version
    ), recorded AS (
      INSERT INTO changes (codebase, version, path, before, after, kept_as)
      SELECT changed.number, given.*
      FROM changed, unnest($18::bigint[], $19::text[], $20::text[], $21::text[], $22::text[]) AS given
    ), made AS (
      INSERT INTO versions (codebase, ${names.join(", ")}) SELECT number, ${places} FROM changed
    )
    SELECT ${CODEBASES.selected} FROM changed`;
  return await CODEBASES.ask(database, statement, [...values, ...Object.values(made)] as never);
}
