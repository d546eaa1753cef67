import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { invalid } from "./fields.ts";

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
