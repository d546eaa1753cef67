import { chainHash } from "../event-chain.ts";
import type { ChainAnchor, EventDraft, EventLevel, EventMetadata, EventQuery, EventRecord } from "../store.ts";
import { where } from "./codebases.ts";
import type { Database, Row } from "./database.ts";
import type { Immediate } from "./protocol.ts";

interface EventRow {
  readonly sequence: number;
  readonly time: number;
  readonly type: string;
  readonly level: EventLevel;
  readonly owner_id: string;
  readonly key_id: string;
  readonly sandbox_id: string;
  readonly codebase_id: string;
  readonly session_id: string;
  readonly data: string;
  readonly hash: string;
}

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
          insertEvent(database, record);
          head = record;
          return record;
        });
        moveChainEnd(database, "head", head);
        return records;
      }),
    listEvents(query) {
      const { conditions, values } = selection(query);
      return database
        .select<EventRow>(`SELECT * FROM events ${where(conditions)} ORDER BY sequence LIMIT :limit`, values)
        .map(toRecord);
    },
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

/** What comes back from the database must be what was hashed, so it is made of what the database can keep. */
function storable(draft: EventDraft): EventDraft {
  return {
    timeMs: Math.trunc(draft.timeMs),
    type: draft.type.toWellFormed(),
    level: draft.level,
    ownerId: draft.ownerId.toWellFormed(),
    keyId: draft.keyId.toWellFormed(),
    sandboxId: draft.sandboxId.toWellFormed(),
    codebaseId: draft.codebaseId.toWellFormed(),
    sessionId: draft.sessionId.toWellFormed(),
    data: JSON.parse(JSON.stringify(draft.data)) as EventDraft["data"],
  };
}

function insertEvent(database: Database, event: EventRecord): void {
  database.run(
    INSERT_EVENT,
    event.sequence,
    event.timeMs,
    event.type,
    event.level,
    event.ownerId,
    event.keyId,
    event.sandboxId,
    event.codebaseId,
    event.sessionId,
    JSON.stringify(event.data),
    event.hash,
  );
}

const INSERT_EVENT = `INSERT INTO events
    (sequence, time, type, level, owner_id, key_id, sandbox_id, codebase_id, session_id, data, hash)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

function selection(query: EventQuery): { conditions: string[]; values: Row } {
  const { ownerId, sandboxId, codebaseId, types, fromMs, untilMs, afterSequence, limit } = query;
  const conditions: string[] = [];
  const values: Record<string, string | number> = { limit };
  const add = (condition: string, name: string, value: string | number | undefined): void => {
    if (value === undefined) return;
    conditions.push(condition);
    values[name] = value;
  };
  // Repeating that an id is not empty is what lets SQLite use an index without the events that have none.
  add("sandbox_id = :sandbox AND sandbox_id <> ''", "sandbox", sandboxId);
  add("codebase_id = :codebase AND codebase_id <> ''", "codebase", codebaseId);
  add("owner_id = :owner", "owner", ownerId);
  // The one type that is usually asked for comes from the index in order; of several, the order of the log does.
  if (types?.length === 1) add("type = :type", "type", types[0]);
  else if (types !== undefined && types.length > 0) {
    add("+type IN (SELECT value FROM json_each(:types))", "types", JSON.stringify(types));
  }
  add("time >= :from_time", "from_time", fromMs);
  add("time < :until_time", "until_time", untilMs);
  add("sequence > :after", "after", afterSequence);
  return { conditions, values };
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

function toRecord(row: EventRow): EventRecord {
  return {
    sequence: row.sequence,
    timeMs: row.time,
    type: row.type,
    level: row.level,
    ownerId: row.owner_id,
    keyId: row.key_id,
    sandboxId: row.sandbox_id,
    codebaseId: row.codebase_id,
    sessionId: row.session_id,
    data: JSON.parse(row.data) as EventRecord["data"],
    hash: row.hash,
  };
}
