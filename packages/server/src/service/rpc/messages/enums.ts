import { SandboxStatus, SessionStatus } from "@agentfense/protocol/common";
import * as wire from "@agentfense/protocol/words";
import type * as callers from "../../../runtime/caller.ts";
import type { ManifestEntry } from "../../../runtime/codebases/api.ts";
import type { ProcessKind, SandboxChange, WatchedChange } from "../../../runtime/sandboxes/api.ts";
import type * as store from "../../../runtime/store/store.ts";
import { invalid } from "./fields.ts";

// Every word of the runtime has a number on the wire, or this does not compile.

export type Rule = store.SandboxRecord["rules"][number];

type Numbers<Word extends string> = Readonly<Record<Word, number>>;

export const PERMISSIONS = wire.PERMISSIONS satisfies Numbers<Rule["permission"]>;
export const PATTERN_TYPES = wire.PATTERN_TYPES satisfies Numbers<NonNullable<Rule["type"]>>;
export const RUNTIMES = wire.RUNTIMES satisfies Numbers<store.RuntimeName>;
export const NETWORKS = wire.NETWORKS satisfies Numbers<store.NetworkName>;
export const SYNC_MODES = wire.SYNC_MODES satisfies Numbers<store.SyncMode>;
export const VERSION_ORIGINS = wire.VERSION_ORIGINS satisfies Numbers<store.VersionOrigin>;
export const CHANGE_KINDS = wire.CHANGE_KINDS satisfies Numbers<SandboxChange["kind"]>;
export const MANIFEST_KINDS = wire.MANIFEST_KINDS satisfies Numbers<ManifestEntry["kind"]>;
export const CHANGE_TYPES = wire.CHANGE_TYPES satisfies Numbers<SandboxChange["type"]>;
export const PROCESS_KINDS = wire.PROCESS_KINDS satisfies Numbers<ProcessKind>;
export const FILE_EVENTS = wire.FILE_EVENTS satisfies Numbers<WatchedChange["kind"]>;
export const ROLES = wire.ROLES satisfies Numbers<callers.Role>;

export const SANDBOX_STATUSES = {
  PENDING: SandboxStatus.PENDING,
  RUNNING: SandboxStatus.RUNNING,
  PAUSED: SandboxStatus.PAUSED,
  STOPPED: SandboxStatus.STOPPED,
  ERROR: SandboxStatus.ERROR,
} as const satisfies Numbers<store.SandboxRecordStatus>;

export const SESSION_STATUSES = {
  ACTIVE: SessionStatus.ACTIVE,
  CLOSED: SessionStatus.CLOSED,
} as const satisfies Numbers<store.SessionRecord["status"]>;

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
