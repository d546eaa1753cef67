import { EVENT_COLUMNS } from "../columns.ts";
import { chainHash, storable } from "../event-chain.ts";
import type { ChainAnchor, EventMetadata, EventQuery, EventRecord } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";
import { type Filter, matching, Table } from "./table.ts";

const EVENTS = new Table("events", EVENT_COLUMNS);

/** The audit log. Nothing about the chain is remembered outside of the database: another process may append too. */
export function eventMethods(database: Database): Immediate<EventMetadata> {
  return {
    appendEvents: (drafts) =>
      database.write(() => {
        let head = chainEnd(database, "head");
        const records = drafts.map((draft): EventRecord => {
          const event = storable(draft);
          const sequence = head.sequence + 1;
          const record = { ...event, sequence, hash: chainHash(head.hash, sequence, event) };
          EVENTS.insert(database, record);
          head = record;
          return record;
        });
        moveChainEnd(database, "head", head);
        return records;
      }),
    listEvents: (query) => EVENTS.list(database, filtersOf(query), "sequence", query.limit),
    chainAnchor: () => chainEnd(database, "anchor"),
    chainHead: () => chainEnd(database, "head"),
    trimEvents: ({ beforeMs, keep }) =>
      database.write(() => {
        const anchor = chainEnd(database, "anchor");
        const head = chainEnd(database, "head");
        const last = Math.max(
          beforeMs === undefined ? 0 : lastOlderThan(database, beforeMs, head.sequence),
          keep === undefined ? 0 : head.sequence - keep,
        );
        if (last <= anchor.sequence) return 0;
        const hash = database.get<{ hash: string }>("SELECT hash FROM events WHERE sequence = ?", last)?.hash;
        if (hash === undefined) throw new Error(`event ${last} of the audit log is missing: it was tampered with`);
        moveChainEnd(database, "anchor", { sequence: last, hash });
        return database.run("DELETE FROM events WHERE sequence <= ?", last);
      }),
  };
}

function filtersOf({
  ownerId,
  sandboxId,
  codebaseId,
  types = [],
  fromMs,
  untilMs,
  afterSequence,
}: EventQuery): Filter[] {
  return [
    // Repeating that an id is not empty is what lets SQLite use an index without the events that have none.
    ...matching("sandbox_id <> '' AND sandbox_id", sandboxId, "=", "sandbox"),
    ...matching("codebase_id <> '' AND codebase_id", codebaseId, "=", "codebase"),
    ...matching("owner_id", ownerId),
    // The one type that is usually asked for comes from the index in order; of several, the order of the log does.
    ...(types.length === 1 ? matching("type", types[0]) : []),
    ...(types.length > 1
      ? [["+type IN (SELECT value FROM json_each(:types))", { types: JSON.stringify(types) }] as const]
      : []),
    ...matching("time", fromMs, ">=", "from_time"),
    ...matching("time", untilMs, "<", "until_time"),
    ...matching("sequence", afterSequence, ">"),
  ];
}

/** The last event of the oldest run that is altogether before a time; clocks step back, sequences do not. */
function lastOlderThan(database: Database, beforeMs: number, headSequence: number): number {
  const firstToStay = database.get<{ sequence: number }>(
    "SELECT sequence FROM events WHERE time >= ? ORDER BY sequence LIMIT 1",
    beforeMs,
  );
  return firstToStay === undefined ? headSequence : firstToStay.sequence - 1;
}

function chainEnd(database: Database, name: "anchor" | "head"): ChainAnchor {
  const end = database.get<ChainAnchor>("SELECT sequence, hash FROM chain_ends WHERE name = ?", name);
  if (end === undefined) throw new Error(`the ${name} of the audit log is missing: it was tampered with`);
  return { sequence: end.sequence, hash: end.hash };
}

function moveChainEnd(database: Database, name: "anchor" | "head", { sequence, hash }: ChainAnchor): void {
  database.run("UPDATE chain_ends SET sequence = ?, hash = ? WHERE name = ?", sequence, hash, name);
}
