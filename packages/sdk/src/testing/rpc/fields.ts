import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { invalid } from "../faults.ts";

// Fields of requests, parsed where they come in. Every refusal names the field as the contract spells it.

export function required(value: string, field: string, where = ""): string {
  if (value === "") throw invalid(`${field} is required${where === "" ? "" : ` ${where}`}`, { field });
  return value;
}

/** An int64 that counts something. */
export function count(value: bigint, field: string): number {
  if (value < 0n) throw invalid(`${field} must not be negative`, { field });
  return Number(value);
}

/** The bits that chmod takes. */
export function permissionBits(mode: number, field: string): number {
  if (mode > 0o7777) throw invalid(`${field} must be permission bits only, 07777 at most`, { field });
  return mode & 0o777;
}

/** Absent, or 0: undefined, which is the default. */
export function durationMs(duration: Duration | undefined, field: string): number | undefined {
  if (duration === undefined) return undefined;
  const ms = Number(duration.seconds) * 1000 + Math.ceil(duration.nanos / 1_000_000);
  if (ms < 0) throw invalid(`${field} must not be negative`, { field });
  return ms === 0 ? undefined : ms;
}

export function durationMessage(ms: number): Duration {
  const nanos = BigInt(Math.max(0, Math.round(ms * 1_000_000)));
  return create(DurationSchema, { seconds: nanos / 1_000_000_000n, nanos: Number(nanos % 1_000_000_000n) });
}

export function timestampMs(timestamp: Timestamp | undefined): number | undefined {
  return timestamp && Number(timestamp.seconds) * 1000 + Math.ceil(timestamp.nanos / 1_000_000);
}

export function timestampMessage(ms: number | undefined): Timestamp | undefined {
  if (ms === undefined) return undefined;
  const seconds = Math.floor(ms / 1000);
  return create(TimestampSchema, {
    seconds: BigInt(seconds),
    nanos: Math.min(999_999_999, Math.round((ms - seconds * 1000) * 1_000_000)),
  });
}

/** Our word for a number of the contract; undefined when it was not given. */
export function wordFor<Word extends string>(
  table: Readonly<Record<Word, number>>,
  value: number,
  field: string,
): Word | undefined {
  if (value === 0) return undefined;
  const word = (Object.keys(table) as Word[]).find((each) => table[each] === value);
  if (word === undefined) throw invalid(`${field}: ${value} is not a known value`, { field });
  return word;
}

const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1000;

/** A page of a list that is there as a whole. A token says where the next one begins. */
export function pageOf<Item>(
  items: readonly Item[],
  { pageSize, pageToken }: { readonly pageSize: number; readonly pageToken: string },
  options: { readonly allByDefault?: boolean } = {},
): { readonly items: readonly Item[]; readonly nextPageToken: string } {
  const start = startOf(pageToken);
  const byDefault = options.allByDefault === true ? items.length : DEFAULT_PAGE;
  const end = start + (pageSize > 0 ? Math.min(pageSize, LARGEST_PAGE) : byDefault);
  return { items: items.slice(start, end), nextPageToken: end < items.length ? tokenFor(end) : "" };
}

function tokenFor(start: number): string {
  return Buffer.from(JSON.stringify([start])).toString("base64url");
}

function startOf(token: string): number {
  if (token === "") return 0;
  const start = Number(/^\[(\d+)\]$/.exec(Buffer.from(token, "base64url").toString("utf8"))?.[1]);
  if (Number.isNaN(start)) throw invalid("page_token is not one that this server gave out");
  return start;
}
