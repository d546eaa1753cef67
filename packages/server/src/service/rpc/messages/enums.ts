import { ChangeKind, EntryKind, VersionOrigin } from "@agentfense/protocol/codebase";
import { PatternType, Permission, SandboxStatus, SessionStatus } from "@agentfense/protocol/common";
import { FileEventKind, NetworkMode, RuntimeType, SyncMode } from "@agentfense/protocol/sandbox";
import { Role } from "@agentfense/protocol/system";
import type * as callers from "../../../runtime/caller.ts";
import type { ManifestEntry } from "../../../runtime/codebases/api.ts";
import type { SandboxChange, WatchedChange } from "../../../runtime/sandboxes/api.ts";
import type * as store from "../../../runtime/store/store.ts";
import { invalid } from "./fields.ts";

// The runtime's words and the contract's numbers, side by side. Zero is "not given" in all of them.

export type Rule = store.SandboxRecord["rules"][number];

export const PERMISSIONS = {
  none: Permission.NONE,
  view: Permission.VIEW,
  read: Permission.READ,
  write: Permission.WRITE,
} as const satisfies Record<Rule["permission"], Permission>;

export const PATTERN_TYPES = {
  glob: PatternType.GLOB,
  directory: PatternType.DIRECTORY,
  file: PatternType.FILE,
} as const satisfies Record<NonNullable<Rule["type"]>, PatternType>;

export const SANDBOX_STATUSES = {
  PENDING: SandboxStatus.PENDING,
  RUNNING: SandboxStatus.RUNNING,
  STOPPED: SandboxStatus.STOPPED,
  ERROR: SandboxStatus.ERROR,
} as const satisfies Record<store.SandboxRecordStatus, SandboxStatus>;

export const SESSION_STATUSES = {
  ACTIVE: SessionStatus.ACTIVE,
  CLOSED: SessionStatus.CLOSED,
} as const satisfies Record<store.SessionRecord["status"], SessionStatus>;

export const RUNTIMES = {
  bwrap: RuntimeType.BWRAP,
  docker: RuntimeType.DOCKER,
  mock: RuntimeType.MOCK,
} as const satisfies Record<store.RuntimeName, RuntimeType>;

export const NETWORKS = {
  none: NetworkMode.NONE,
  private: NetworkMode.PRIVATE,
  host: NetworkMode.HOST,
} as const satisfies Record<store.NetworkName, NetworkMode>;

export const SYNC_MODES = {
  "on-exec": SyncMode.ON_EXEC,
  manual: SyncMode.MANUAL,
  never: SyncMode.NEVER,
} as const satisfies Record<store.SyncMode, SyncMode>;

export const VERSION_ORIGINS = {
  upload: VersionOrigin.UPLOAD,
  sync: VersionOrigin.SYNC,
  rollback: VersionOrigin.ROLLBACK,
  delete: VersionOrigin.DELETE,
  rename: VersionOrigin.RENAME,
} as const satisfies Record<store.VersionOrigin, VersionOrigin>;

export const CHANGE_KINDS = {
  added: ChangeKind.ADDED,
  modified: ChangeKind.MODIFIED,
  deleted: ChangeKind.DELETED,
  renamed: ChangeKind.RENAMED,
} as const satisfies Record<SandboxChange["kind"], ChangeKind>;

export const MANIFEST_KINDS = {
  file: EntryKind.FILE,
  directory: EntryKind.DIRECTORY,
  symlink: EntryKind.SYMLINK,
  absent: EntryKind.ABSENT,
} as const satisfies Record<ManifestEntry["kind"], EntryKind>;

/** Sockets, fifos and the like have no kind of their own. */
export const CHANGE_TYPES = {
  file: EntryKind.FILE,
  directory: EntryKind.DIRECTORY,
  symlink: EntryKind.SYMLINK,
  other: EntryKind.UNSPECIFIED,
} as const satisfies Record<SandboxChange["type"], EntryKind>;

export const FILE_EVENT_KINDS = {
  rename: FileEventKind.RENAME,
  change: FileEventKind.CHANGE,
} as const satisfies Record<WatchedChange["kind"], FileEventKind>;

export const ROLES = {
  admin: Role.ADMIN,
  user: Role.USER,
  "read-only": Role.READ_ONLY,
} as const satisfies Record<callers.Role, Role>;

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
