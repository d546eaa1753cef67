import type { Level, Rule } from "@agentfense/permission";
import * as wire from "@agentfense/protocol/words";
import { create } from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  type Timestamp,
  timestampDate,
  timestampFromDate,
} from "@bufbuild/protobuf/wkt";
import { InvalidConfigurationError, SandboxError } from "../../errors.ts";
import type * as options from "../../model/options.ts";
import type * as records from "../../model/records.ts";
import type { ManifestEntry } from "../../model/requests.ts";

/** An int64 of the wire as a number. Those that are not exact as one do not come from a server of ours. */
export function numberOf(value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new SandboxError(`the server sent a number that is too large: ${value}`, { code: "UNKNOWN" });
}

/** A count on its way to the server. Absent is 0, which the contract takes for "not given". */
export function bigintOf(value: number | undefined, name: string): bigint {
  if (value === undefined) return 0n;
  if (Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  throw invalid(`${name} must be a whole number, 0 or more, not ${value}`);
}

const LARGEST_UINT32 = 2 ** 32 - 1;

/** The same for fields of 32 bits. */
export function uint32Of(value: number | undefined, name: string): number {
  if (value === undefined) return 0;
  if (Number.isInteger(value) && value >= 0 && value <= LARGEST_UINT32) return value;
  throw invalid(`${name} must be a whole number, 0 or more, not ${value}`);
}

const LARGEST_INT32 = 2 ** 31 - 1;

/** How many to fetch at a time; the server has a maximum of its own. */
export function pageSizeOf(pageSize: number | undefined): number {
  if (pageSize === undefined) return 0;
  if (Number.isInteger(pageSize) && pageSize > 0) return Math.min(pageSize, LARGEST_INT32);
  throw invalid(`pageSize must be a whole number above 0, not ${pageSize}`);
}

export function invalid(message: string, cause?: unknown): InvalidConfigurationError {
  return new InvalidConfigurationError(message, { code: "INVALID_ARGUMENT", cause });
}

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

// Every word of ours has a number on the wire, or this does not compile.

type Numbers<Word extends string> = Readonly<Record<Word, number>>;

export const PERMISSIONS = wire.PERMISSIONS satisfies Numbers<Level>;
export const PATTERN_TYPES = wire.PATTERN_TYPES satisfies Numbers<NonNullable<Rule["type"]>>;
export const SANDBOX_STATUSES = wire.SANDBOX_STATUSES satisfies Numbers<records.SandboxStatus>;
export const SESSION_STATUSES = wire.SESSION_STATUSES satisfies Numbers<records.SessionInfo["status"]>;
export const RUNTIMES = wire.RUNTIMES satisfies Numbers<records.SandboxInfo["runtime"]>;
export const NETWORKS = wire.NETWORKS satisfies Numbers<options.NetworkMode>;
export const SYNC_MODES = wire.SYNC_MODES satisfies Numbers<options.SyncMode>;
export const VERSION_ORIGINS = wire.VERSION_ORIGINS satisfies Numbers<records.VersionOrigin>;
export const CHANGE_KINDS = wire.CHANGE_KINDS satisfies Numbers<records.ChangeKind>;
export const MANIFEST_KINDS = wire.MANIFEST_KINDS satisfies Numbers<ManifestEntry["kind"]>;
export const CHANGE_TYPES = wire.CHANGE_TYPES satisfies Numbers<records.Change["type"]>;
export const CODE_LANGUAGES = wire.CODE_LANGUAGES satisfies Numbers<records.CodeLanguage>;
export const PROCESS_KINDS = wire.PROCESS_KINDS satisfies Numbers<records.ProcessKind>;
/** The cause of a change; none when the server knows one which this client does not. */
export function causeOf(number: number): Pick<records.FileChange, "cause"> {
  const known = Object.entries(wire.FILE_EVENT_CAUSES).find(([, each]) => each === number);
  return known === undefined ? {} : { cause: known[0] as records.FileChangeCause };
}

export const FILE_EVENTS = wire.FILE_EVENTS satisfies Numbers<records.FileChange["eventType"]>;
export const ROLES = wire.ROLES satisfies Numbers<records.Role>;

/** The word for a number. A server that is newer than this client may have numbers that it does not know. */
export function wordOf<Word extends string>(words: Readonly<Record<Word, number>>, number: number, what: string): Word {
  for (const word of Object.keys(words) as Word[]) if (words[word] === number) return word;
  throw new SandboxError(`the server sent a ${what} that this client does not know: ${number}`, {
    code: "UNKNOWN",
    hint: "update the client",
  });
}

/** The number of a word, 0 for none. Callers without types may have words that are none. */
export function numberFor<Word extends string>(
  words: Readonly<Record<Word, number>>,
  word: Word | undefined,
  what: string,
): number {
  if (word === undefined) return 0;
  if (Object.hasOwn(words, word)) return words[word];
  throw invalid(`${what} must be one of ${Object.keys(words).join(", ")}, not ${JSON.stringify(word)}`);
}
