import { createHash } from "node:crypto";
import type { ChainAnchor, EventDraft } from "./store.ts";

// The hash chain over the audit log.
//
//   hash(n) = SHA-256( hash(n-1) LF text(n) ), in lower-case hexadecimal
//
// `hash(n-1)` stands there as its 64 hexadecimal digits; that of the first event ever follows GENESIS. LF is one byte 0x0a.
// `text(n)` is the canonical JSON, in UTF-8, of an object with exactly these members:
//
//   codebaseId data keyId level ownerId sandboxId sequence sessionId timeMs type
//
// `sequence` and `timeMs` (milliseconds since 1970) are integers, `data` is an object of JSON values, the others are strings,
// empty where they do not apply. Canonical means: no white space, the members of every object in the order of their names
// (compared by UTF-16 code units), strings and numbers as JSON.stringify of ECMAScript writes them.
//
// Sequences grow by one. Beside the events the store keeps two pairs of (sequence, hash): the *anchor* is the last event
// that retention removed (GENESIS before that), so the oldest stored event follows it; the *head* is the newest event ever
// stored, so a log whose end was cut off does not reach it. Every event that is appended moves the head in the same
// transaction, every removal of old events the anchor.

/** What the first event follows. */
export const GENESIS: ChainAnchor = { sequence: 0, hash: "0".repeat(64) };

/** Beside the sequence. */
const MEMBERS = [
  "codebaseId",
  "data",
  "keyId",
  "level",
  "ownerId",
  "sandboxId",
  "sessionId",
  "timeMs",
  "type",
] as const;

export function chainHash(previousHash: string, sequence: number, event: EventDraft): string {
  const members = MEMBERS.map((name) => [name, event[name]]);
  const text = canonicalJson({ ...Object.fromEntries(members), sequence });
  return createHash("sha256").update(previousHash).update("\n").update(text).digest("hex");
}

/** What comes back from the database must be what was hashed, so it is made of what the database can keep. */
export function storable(draft: EventDraft): EventDraft {
  const { timeMs, level, data, ...texts } = draft;
  const wellFormed = Object.entries(texts).map(([name, text]) => [name, text.toWellFormed()]);
  return {
    ...(Object.fromEntries(wellFormed) as typeof texts),
    timeMs: Math.trunc(timeMs),
    level,
    data: JSON.parse(JSON.stringify(data)) as EventDraft["data"],
  };
}

/** The value must be one that JSON can carry; members that are undefined do not count. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join(",")}}`;
}
