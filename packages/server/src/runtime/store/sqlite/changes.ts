import { growthOf, keptBytesOf } from "../growth.ts";
import { datedBy } from "../packed.ts";
import type { CodebaseMetadata, CodebaseRecord, JournalRecord } from "../store.ts";
import { codebaseNumber, codebaseRecord } from "./codebases.ts";
import type { Database } from "./database.ts";
import { entryWriter } from "./entries.ts";
import type { Immediate } from "./protocol.ts";
import { changeWriter, insertVersion } from "./versions.ts";

type Methods = "beginChange" | "finishChange" | "settleChange" | "unsettledChanges";

/** Changes of a codebase: the journal, and what it does to the manifest. */
export function changeMethods(database: Database): Immediate<Pick<CodebaseMetadata, Methods>> {
  return {
    beginChange: (journal) =>
      database.write(() => {
        const codebase = codebaseNumber(database, journal.codebaseId);
        if (codebase === undefined) throw new Error(`there is no codebase ${journal.codebaseId}`);
        if (journalOf(database, codebase) !== undefined) {
          throw new Error(`codebase ${journal.codebaseId} has an unsettled change`);
        }
        database.insert("journals", { codebase, journal: JSON.stringify(journal) });
      }),
    finishChange: (codebaseId, finishedAtMs) =>
      database.write(() => {
        const codebase = codebaseNumber(database, codebaseId);
        const journal = codebase === undefined ? undefined : journalOf(database, codebase);
        if (codebase === undefined || journal === undefined || isFinished(database, journal)) {
          throw new Error(`codebase ${codebaseId} has no unfinished change`);
        }
        carryOut(database, codebase, finishedAtMs === undefined ? journal : datedBy(journal, finishedAtMs));
        return codebaseRecord(database, codebaseId) as CodebaseRecord;
      }),
    settleChange: (codebaseId) =>
      database.write(() => {
        database.run(
          `DELETE FROM journals WHERE (codebase, json_extract(journal, '$.version.version')) IN
             (SELECT number, version FROM codebases WHERE id = ?)`,
          codebaseId,
        );
      }),
    unsettledChanges: () =>
      database
        .all<{ journal: string }>("SELECT journal FROM journals ORDER BY codebase")
        .map(({ journal }) => JSON.parse(journal) as JournalRecord),
  };
}

function carryOut(database: Database, codebase: number, { version, changes }: JournalRecord): void {
  const entries = entryWriter(database, codebase);
  const writeChange = changeWriter(database, codebase);
  for (const change of changes) {
    if (change.after === undefined) entries.remove(change.path);
    else entries.put(change.after);
    writeChange(change);
  }
  const { bytes, files, directories } = growthOf(changes);
  const keptBytes = keptBytesOf(version, changes);
  insertVersion(database, codebase, version, keptBytes);
  database.run(
    `UPDATE codebases SET size = size + ?, file_count = file_count + ?, directory_count = directory_count + ?,
       kept_bytes = kept_bytes + ?, version = ?, updated_at = ? WHERE number = ?`,
    bytes,
    files,
    directories,
    keptBytes,
    version.version,
    version.createdAtMs,
    codebase,
  );
}

function isFinished(database: Database, { codebaseId, version }: JournalRecord): boolean {
  return (codebaseRecord(database, codebaseId)?.version ?? 0) >= version.version;
}

function journalOf(database: Database, codebase: number): JournalRecord | undefined {
  const row = database.get<{ journal: string }>("SELECT journal FROM journals WHERE codebase = ?", codebase);
  return row && (JSON.parse(row.journal) as JournalRecord);
}
