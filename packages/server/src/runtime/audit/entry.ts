import type { EventDraft, EventLevel } from "../store/store.ts";
import type { AuditEntry } from "./api.ts";

/** One event as the operator's log has it: what it is about beside level, time and type, and its data as further members. */
export interface AuditLine {
  readonly level: EventLevel;
  /** ISO 8601, UTC. */
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A command line may be megabytes long; what is kept of a text is this many UTF-16 units. */
const LONGEST_TEXT = 8 * 1024;
/** Of an event's data, as JSON. */
const LARGEST_DATA = 64 * 1024;

/** A copy, cut to size, of what may change or be too large. Never throws. `size`: about what it takes in memory. */
export function draftOf(entry: AuditEntry, timeMs: number): { readonly draft: EventDraft; readonly size: number } {
  const { data, size } = boundedData(entry.data ?? {});
  const draft: EventDraft = {
    timeMs,
    type: entry.type,
    level: entry.level ?? "info",
    ownerId: entry.ownerId ?? "",
    keyId: entry.keyId ?? "",
    sandboxId: entry.sandboxId ?? "",
    codebaseId: entry.codebaseId ?? "",
    sessionId: entry.sessionId ?? "",
    data,
  };
  return { draft, size };
}

export function lineOf(event: EventDraft): AuditLine {
  const subject = {
    sandbox_id: event.sandboxId,
    codebase_id: event.codebaseId,
    user_id: event.ownerId,
    session_id: event.sessionId,
    key_id: event.keyId,
  };
  return {
    level: event.level,
    time: new Date(event.timeMs).toISOString(),
    msg: event.type,
    ...Object.fromEntries(Object.entries(subject).filter(([, id]) => id !== "")),
    // What the event says about itself never passes for one of the members above.
    ...Object.fromEntries(
      Object.entries(event.data).filter(
        ([name]) => !Object.hasOwn(subject, name) && !["level", "time", "msg"].includes(name),
      ),
    ),
  };
}

function boundedData(data: Readonly<Record<string, unknown>>): {
  readonly data: EventDraft["data"];
  readonly size: number;
} {
  let cut = false;
  const shorten = (_name: string, value: unknown): unknown => {
    if (typeof value === "bigint") return value.toString();
    if (typeof value !== "string") return value;
    cut ||= value.length > LONGEST_TEXT;
    return value.slice(0, LONGEST_TEXT).toWellFormed();
  };
  try {
    const text = JSON.stringify(data, shorten);
    if (text.length > LARGEST_DATA) return { data: { truncated: true }, size: 0 };
    const copy = JSON.parse(text) as Record<string, unknown>;
    return { data: cut ? { ...copy, truncated: true } : copy, size: text.length };
  } catch (error) {
    // A cycle, for one. That something happened is worth more than what it said.
    return { data: { unreadable: error instanceof Error ? error.message : String(error) }, size: 0 };
  }
}
