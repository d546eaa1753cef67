import type { Level, Rule } from "@agentfense/permission";
import { ChangeKind, EntryKind, VersionOrigin } from "@agentfense/protocol/codebase";
import { PatternType, Permission, SandboxStatus, SessionStatus } from "@agentfense/protocol/common";
import { FileEventKind, NetworkMode, RuntimeType, SyncMode } from "@agentfense/protocol/sandbox";
import { Role } from "@agentfense/protocol/system";
import { SandboxError } from "../../errors.ts";
import type * as options from "../../model/options.ts";
import type * as records from "../../model/records.ts";
import type { ManifestEntry } from "../../model/requests.ts";
import { invalid } from "./numbers.ts";

// Our words and the contract's numbers, side by side.

export const PERMISSIONS = {
  none: Permission.NONE,
  view: Permission.VIEW,
  read: Permission.READ,
  write: Permission.WRITE,
} as const satisfies Record<Level, Permission>;

export const PATTERN_TYPES = {
  glob: PatternType.GLOB,
  directory: PatternType.DIRECTORY,
  file: PatternType.FILE,
} as const satisfies Record<NonNullable<Rule["type"]>, PatternType>;

export const SANDBOX_STATUSES = {
  pending: SandboxStatus.PENDING,
  running: SandboxStatus.RUNNING,
  stopped: SandboxStatus.STOPPED,
  error: SandboxStatus.ERROR,
} as const satisfies Record<records.SandboxStatus, SandboxStatus>;

export const SESSION_STATUSES = {
  active: SessionStatus.ACTIVE,
  closed: SessionStatus.CLOSED,
} as const satisfies Record<records.SessionInfo["status"], SessionStatus>;

export const RUNTIMES = {
  bwrap: RuntimeType.BWRAP,
  docker: RuntimeType.DOCKER,
  mock: RuntimeType.MOCK,
} as const satisfies Record<options.RuntimeName | "mock", RuntimeType>;

export const NETWORKS = {
  none: NetworkMode.NONE,
  private: NetworkMode.PRIVATE,
  host: NetworkMode.HOST,
} as const satisfies Record<options.NetworkMode, NetworkMode>;

export const SYNC_MODES = {
  "on-exec": SyncMode.ON_EXEC,
  manual: SyncMode.MANUAL,
  never: SyncMode.NEVER,
} as const satisfies Record<options.SyncMode, SyncMode>;

export const VERSION_ORIGINS = {
  upload: VersionOrigin.UPLOAD,
  sync: VersionOrigin.SYNC,
  rollback: VersionOrigin.ROLLBACK,
  delete: VersionOrigin.DELETE,
  rename: VersionOrigin.RENAME,
} as const satisfies Record<records.VersionOrigin, VersionOrigin>;

export const CHANGE_KINDS = {
  added: ChangeKind.ADDED,
  modified: ChangeKind.MODIFIED,
  deleted: ChangeKind.DELETED,
  renamed: ChangeKind.RENAMED,
} as const satisfies Record<records.ChangeKind, ChangeKind>;

export const ENTRY_KINDS = {
  file: EntryKind.FILE,
  directory: EntryKind.DIRECTORY,
  symlink: EntryKind.SYMLINK,
  absent: EntryKind.ABSENT,
} as const satisfies Record<ManifestEntry["kind"], EntryKind>;

/** Sockets, fifos and the like have no number of their own. */
export const CHANGE_TYPES = {
  file: EntryKind.FILE,
  directory: EntryKind.DIRECTORY,
  symlink: EntryKind.SYMLINK,
  other: EntryKind.UNSPECIFIED,
} as const satisfies Record<records.Change["type"], EntryKind>;

export const FILE_EVENTS = {
  rename: FileEventKind.RENAME,
  change: FileEventKind.CHANGE,
} as const satisfies Record<records.FileChange["eventType"], FileEventKind>;

export const ROLES = {
  admin: Role.ADMIN,
  user: Role.USER,
  "read-only": Role.READ_ONLY,
} as const satisfies Record<records.Role, Role>;

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
