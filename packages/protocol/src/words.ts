import { ChangeKind, EntryKind, VersionOrigin } from "./generated/sandbox/v1/codebase_pb.js";
import { PatternType, Permission, SandboxStatus, SessionStatus } from "./generated/sandbox/v1/common_pb.js";
import {
  CodeLanguage,
  FileEventCause,
  FileEventKind,
  NetworkMode,
  ProcessKind,
  RuntimeType,
  SyncMode,
} from "./generated/sandbox/v1/sandbox_pb.js";
import { Role } from "./generated/sandbox/v1/system_pb.js";

// The words that our programs use, and the numbers by which they travel. Zero is "not given" in all of them.

export const PERMISSIONS = {
  none: Permission.NONE,
  view: Permission.VIEW,
  read: Permission.READ,
  write: Permission.WRITE,
} as const;

export const PATTERN_TYPES = {
  glob: PatternType.GLOB,
  directory: PatternType.DIRECTORY,
  file: PatternType.FILE,
} as const;

export const SANDBOX_STATUSES = {
  pending: SandboxStatus.PENDING,
  running: SandboxStatus.RUNNING,
  paused: SandboxStatus.PAUSED,
  stopped: SandboxStatus.STOPPED,
  error: SandboxStatus.ERROR,
} as const;

export const SESSION_STATUSES = { active: SessionStatus.ACTIVE, closed: SessionStatus.CLOSED } as const;

export const CODE_LANGUAGES = {
  python: CodeLanguage.PYTHON,
  javascript: CodeLanguage.JAVASCRIPT,
  typescript: CodeLanguage.TYPESCRIPT,
  bash: CodeLanguage.BASH,
} as const;

export const PROCESS_KINDS = {
  started: ProcessKind.STARTED,
  command: ProcessKind.COMMAND,
  session: ProcessKind.SESSION,
  terminal: ProcessKind.TERMINAL,
  context: ProcessKind.CONTEXT,
} as const;

export const RUNTIMES = { bwrap: RuntimeType.BWRAP, docker: RuntimeType.DOCKER, mock: RuntimeType.MOCK } as const;

export const NETWORKS = {
  none: NetworkMode.NONE,
  private: NetworkMode.PRIVATE,
  host: NetworkMode.HOST,
  filtered: NetworkMode.FILTERED,
} as const;

export const SYNC_MODES = {
  "on-exec": SyncMode.ON_EXEC,
  manual: SyncMode.MANUAL,
  never: SyncMode.NEVER,
} as const;

export const VERSION_ORIGINS = {
  upload: VersionOrigin.UPLOAD,
  sync: VersionOrigin.SYNC,
  rollback: VersionOrigin.ROLLBACK,
  delete: VersionOrigin.DELETE,
  rename: VersionOrigin.RENAME,
} as const;

export const CHANGE_KINDS = {
  added: ChangeKind.ADDED,
  modified: ChangeKind.MODIFIED,
  deleted: ChangeKind.DELETED,
  renamed: ChangeKind.RENAMED,
} as const;

/** Of an entry of a manifest. */
export const MANIFEST_KINDS = {
  file: EntryKind.FILE,
  directory: EntryKind.DIRECTORY,
  symlink: EntryKind.SYMLINK,
  absent: EntryKind.ABSENT,
} as const;

/** Of what changed. Sockets, fifos and the like have no number of their own. */
export const CHANGE_TYPES = {
  file: EntryKind.FILE,
  directory: EntryKind.DIRECTORY,
  symlink: EntryKind.SYMLINK,
  other: EntryKind.UNSPECIFIED,
} as const;

export const FILE_EVENTS = { rename: FileEventKind.RENAME, change: FileEventKind.CHANGE } as const;

export const FILE_EVENT_CAUSES = {
  made: FileEventCause.MADE,
  removed: FileEventCause.REMOVED,
  "moved-away": FileEventCause.MOVED_AWAY,
  "moved-here": FileEventCause.MOVED_HERE,
  written: FileEventCause.WRITTEN,
  attributes: FileEventCause.ATTRIBUTES,
} as const;

export const ROLES = { admin: Role.ADMIN, user: Role.USER, "read-only": Role.READ_ONLY } as const;
