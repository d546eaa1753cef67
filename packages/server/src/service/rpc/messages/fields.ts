import {
  create,
  type DescMessage,
  type Message,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { RuntimeError } from "../../../runtime/runtime-error.ts";

// Fields of requests, parsed where they come in. Every refusal names the field as the contract spells it.

export function invalid(message: string, details: Readonly<Record<string, string>> = {}): RuntimeError {
  return new RuntimeError("INVALID_ARGUMENT", message, { details });
}

/** `where` tells which message of a stream lacks it: "in metadata". */
export function required(value: string, field: string, where = ""): string {
  if (value === "") throw invalid(`${field} is required${where === "" ? "" : ` ${where}`}`, { field });
  return value;
}

/** An int64 that counts something: not negative, and exact as a number. */
export function count(value: bigint, field: string): number {
  if (value < 0n) throw invalid(`${field} must not be negative`, { field });
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid(`${field} is too large`, { field });
  return Number(value);
}

/** The same, where 0 stands for "not given". */
export function optionalCount(value: bigint, field: string): number | undefined {
  const number = count(value, field);
  return number === 0 ? undefined : number;
}

/** The bits that chmod takes; a file type among them (st_mode as a whole) is a mistake worth telling. */
export function permissionBits(mode: number, field: string): number {
  if (mode > 0o7777) throw invalid(`${field} must be permission bits only, 07777 at most`, { field });
  return mode;
}

const LARGEST_INT32 = 2 ** 31 - 1;

/** For fields of 32 bits that count what can outgrow them. */
export function int32(value: number): number {
  return Math.min(value, LARGEST_INT32);
}

type Given<Members> = { -readonly [Name in keyof Members]?: Exclude<Members[Name], undefined> };

/** Without the members that are undefined: in requests to the runtime, not given is spelled as absent. */
export function given<Members extends object>(members: Members): Given<Members> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Given<Members>;
}

const NANOS_PER_SECOND = 1_000_000_000n;
/** ±10,000 years: the range that the definition of Duration gives. */
const LARGEST_DURATION_SECONDS = 315_576_000_000n;
/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z. */
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;

/**
 * | value               | means          |
 * | absent, or 0        | undefined: the server's default, as for clients that never sent zero |
 * | a part of a millisecond | a whole one |
 * | negative, or beyond what a Duration can be | INVALID_ARGUMENT |
 */
export function durationMs(duration: Duration | undefined, field: string): number | undefined {
  if (duration === undefined) return undefined;
  const { seconds, nanos } = duration;
  if (seconds < 0n || nanos < 0) throw invalid(`${field} must not be negative`, { field });
  if (seconds > LARGEST_DURATION_SECONDS || nanos >= Number(NANOS_PER_SECOND)) {
    throw invalid(`${field} is out of range`, { field });
  }
  const ms = Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);
  return ms === 0 ? undefined : ms;
}

export function durationMessage(ms: number): Duration {
  const nanos = BigInt(Math.max(0, Math.round(ms * 1_000_000)));
  return create(DurationSchema, { seconds: nanos / NANOS_PER_SECOND, nanos: Number(nanos % NANOS_PER_SECOND) });
}

/** In whole milliseconds, rounded up: for events stamped with whole ones, "from" and "before" both keep their meaning. */
export function timestampMs(timestamp: Timestamp | undefined, field: string): number | undefined {
  if (timestamp === undefined) return undefined;
  const { seconds, nanos } = timestamp;
  if (seconds < FIRST_SECOND || seconds > LAST_SECOND || nanos < 0 || nanos >= Number(NANOS_PER_SECOND)) {
    throw invalid(`${field} is out of range`, { field });
  }
  return Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);
}

/**
 * A file in a sandbox can have any time its owner gave it, and a Timestamp outside of its range breaks the whole answer: what
 * lies beyond becomes the first or the last second there is.
 */
export function timestampMessage(ms: number | undefined): Timestamp | undefined {
  if (ms === undefined || Number.isNaN(ms)) return undefined;
  const seconds = Math.floor(ms / 1000);
  if (seconds < FIRST_SECOND) return create(TimestampSchema, { seconds: FIRST_SECOND });
  if (seconds > LAST_SECOND) return create(TimestampSchema, { seconds: LAST_SECOND });
  const nanos = Math.min(Math.round((ms - seconds * 1000) * 1_000_000), Number(NANOS_PER_SECOND) - 1);
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos });
}

/** A record that has what a message says: times in milliseconds, numbers where the message has 64 bits, the rest as it is there. */
type RecordOf<Shape> = {
  readonly [Name in keyof Shape as Shape[Name] extends Timestamp | undefined ? `${Name & string}Ms` : Name]:
    | (Shape[Name] extends Timestamp | undefined ? number : Shape[Name] extends bigint ? number : Shape[Name])
    | undefined;
};

/** A record as a message: what has another form there, or another name, is given. */
export function messageOf<Desc extends DescMessage, Given extends MessageInitShape<Desc>>(
  desc: Desc,
  record: RecordOf<Omit<MessageShape<Desc>, keyof Message | keyof Given>>,
  given: Given,
): MessageInitShape<Desc> {
  const known = record as Readonly<Record<string, unknown>>;
  const members = desc.fields.map(({ localName, message, scalar }) => {
    if (message === TimestampSchema)
      return [localName, timestampMessage(known[`${localName}Ms`] as number | undefined)];
    const value = known[localName];
    return [localName, scalar === ScalarType.INT64 && typeof value === "number" ? BigInt(value) : value];
  });
  return { ...Object.fromEntries(members), ...given };
}

/** The runtime's word for a number of the contract; undefined when it was not given. Numbers without a word are refused. */
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
