import { EVENT_COLUMNS, Records } from "../columns.ts";
import { chainHash, storable } from "../event-chain.ts";
import type { ChainAnchor, EventDraft, EventMetadata, EventQuery, EventRecord } from "../store.ts";
import type { Database } from "./database.ts";
import { Conditions, Table } from "./table.ts";

const EVENTS = new Table("events", EVENT_COLUMNS);
const ROWS = new Records(EVENT_COLUMNS);

/** The audit log. The end of the chain is the database's: what another process appended meanwhile comes before. */
export function eventMethods(database: Database): EventMetadata {
  const chainEnd = async (name: "anchor" | "head"): Promise<ChainAnchor> => {
    const end = await database.get<ChainAnchor>("SELECT sequence, hash FROM chain_ends WHERE name = $1", [name]);
    if (end === undefined) throw new Error(`the ${name} of the audit log is missing: it was tampered with`);
    return end;
  };
  return {
    async appendEvents(drafts) {
      const events = drafts.map(storable);
      if (events.length === 0) return [];
      for (;;) {
        const head = await chainEnd("head");
        const records = chained(events, head);
        if (await append(database, head, records)) return records;
      }
    },
    listEvents: (query) => EVENTS.list(database, conditionsOf(query), "sequence", query.limit),
    chainAnchor: () => chainEnd("anchor"),
    chainHead: () => chainEnd("head"),
    async trimEvents({ beforeMs, keep }) {
      for (;;) {
        const [anchor, head] = await Promise.all([chainEnd("anchor"), chainEnd("head")]);
        const last = Math.max(
          beforeMs === undefined ? 0 : await lastOlderThan(database, beforeMs, head.sequence),
          keep === undefined ? 0 : head.sequence - keep,
        );
        if (last <= anchor.sequence) return 0;
        const removed = await remove(database, anchor, last);
        if (removed !== undefined) return removed;
      }
    },
  };
}

function chained(events: readonly EventDraft[], head: ChainAnchor): readonly EventRecord[] {
  let last = head;
  return events.map((event): EventRecord => {
    const sequence = last.sequence + 1;
    const record = { ...event, sequence, hash: chainHash(last.hash, sequence, event) };
    last = record;
    return record;
  });
}

/** False: the chain has grown since its head was read. */
async function append(database: Database, head: ChainAnchor, records: readonly EventRecord[]): Promise<boolean> {
  const rows = records.map((record) => ROWS.row(record));
  const names = Object.keys(rows[0]!);
  const given = names.map((name, at) => `$${at + 5}::${name === "sequence" || name === "time" ? "bigint" : "text"}[]`);
  const last = records.at(-1)!;
  const stored = await database.run(
    `WITH moved AS (
       UPDATE chain_ends SET sequence = $1, hash = $2 WHERE name = 'head' AND sequence = $3 AND hash = $4 RETURNING name
     )
     INSERT INTO events (${names.join(", ")}) SELECT given.* FROM moved, unnest(${given.join(", ")}) AS given`,
    [last.sequence, last.hash, head.sequence, head.hash, ...names.map((name) => rows.map((row) => row[name]!))],
  );
  return stored > 0;
}

/** Gives how many; undefined: others were faster. */
async function remove(database: Database, anchor: ChainAnchor, last: number): Promise<number | undefined> {
  const end = await database.get<{ hash: string }>("SELECT hash FROM events WHERE sequence = $1", [last]);
  if (end === undefined) throw new Error(`event ${last} of the audit log is missing: it was tampered with`);
  const row = await database.get<{ moved: number; removed: number }>(
    `WITH moved AS (
       UPDATE chain_ends SET sequence = $1, hash = $2 WHERE name = 'anchor' AND sequence = $3 RETURNING name
     ), removed AS (
       DELETE FROM events USING moved WHERE events.sequence <= $1 RETURNING events.sequence
     )
     SELECT (SELECT count(*) FROM moved) AS moved, (SELECT count(*) FROM removed) AS removed`,
    [last, end.hash, anchor.sequence],
  );
  return row === undefined || row.moved === 0 ? undefined : row.removed;
}

function conditionsOf(query: EventQuery): Conditions {
  const { ownerId, sandboxId, codebaseId, types = [], fromMs, untilMs, afterSequence } = query;
  return (
    new Conditions()
      // Repeating that an id is not empty is what lets PostgreSQL use an index without the events that have none.
      .add("sandbox_id <> '' AND sandbox_id = ?", sandboxId)
      .add("codebase_id <> '' AND codebase_id = ?", codebaseId)
      .add("owner_id = ?", ownerId)
      .add("type = ?", types.length === 1 ? types[0] : undefined)
      .add("type = ANY(?::text[])", types.length > 1 ? types : undefined)
      .add("time >= ?", fromMs)
      .add("time < ?", untilMs)
      .add("sequence > ?", afterSequence)
  );
}

/** The last event of the oldest run that is altogether before a time; clocks step back, sequences do not. */
async function lastOlderThan(database: Database, beforeMs: number, headSequence: number): Promise<number> {
  const firstToStay = await database.get<{ sequence: number }>(
    "SELECT sequence FROM events WHERE time >= $1 ORDER BY sequence LIMIT 1",
    [beforeMs],
  );
  return firstToStay === undefined ? headSequence : firstToStay.sequence - 1;
}
