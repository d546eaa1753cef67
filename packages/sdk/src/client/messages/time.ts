import { create } from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  type Timestamp,
  timestampDate,
  timestampFromDate,
} from "@bufbuild/protobuf/wkt";
import { invalid } from "./numbers.ts";

/** A moment that is always there; one that a server leaves out is the first of all. */
export function dateOf(timestamp: Timestamp | undefined): Date {
  return timestamp === undefined ? new Date(0) : timestampDate(timestamp);
}

/** The moments among these that have come. */
export function datesOf<Name extends string>(
  timestamps: Readonly<Record<Name, Timestamp | undefined>>,
): { [Each in Name]?: Date } {
  const dates: { [Each in Name]?: Date } = {};
  for (const name of Object.keys(timestamps) as Name[]) {
    const timestamp = timestamps[name];
    if (timestamp !== undefined) dates[name] = timestampDate(timestamp);
  }
  return dates;
}

export function timestampOf(date: Date, name: string): Timestamp {
  if (Number.isNaN(date.getTime())) throw invalid(`${name} is not a valid date`);
  return timestampFromDate(date);
}

export function msOf(duration: Duration | undefined): number {
  return duration === undefined ? 0 : Number(duration.seconds) * 1000 + duration.nanos / 1_000_000;
}

/** A length of time on its way to the server, which takes 0 for "not given": it is refused here, and so is for ever. */
export function durationOf(ms: number, name: string): Duration {
  if (!(Number.isFinite(ms) && ms > 0)) throw invalid(`${name} must be a number of milliseconds above 0, not ${ms}`);
  const whole = Math.ceil(ms);
  return create(DurationSchema, { seconds: BigInt(Math.floor(whole / 1000)), nanos: (whole % 1000) * 1_000_000 });
}
