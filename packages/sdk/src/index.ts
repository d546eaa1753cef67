export {
  extendPreset,
  getPreset,
  type Level,
  listPresets,
  PresetError,
  type PresetSummary,
  type Rule,
  RuleError,
  type RuleType,
  registerPreset,
} from "@agentfense/permission";
export { SandboxClient } from "./client/client.ts";
export type { Engine } from "./engine.ts";
export {
  AuthenticationError,
  CodebaseError,
  CodebaseNotFoundError,
  CommandError,
  CommandExecutionError,
  CommandTimeoutError,
  ConnectionError,
  FileNotFoundError,
  InvalidConfigurationError,
  PermissionDeniedError,
  PortClosedError,
  ResourceLimitExceededError,
  RuntimeUnavailableError,
  SandboxError,
  type SandboxErrorCode,
  type SandboxErrorOptions,
  SandboxNotFoundError,
  SandboxNotRunningError,
  SessionClosedError,
  SessionError,
  SessionNotFoundError,
  UploadError,
  VersionConflictError,
} from "./errors.ts";
export { Listing } from "./listing.ts";
export type {
  CallOptions,
  Command,
  CommandOptions,
  ConnectionOptions,
  NetworkMode,
  OutputCallbacks,
  PageOptions,
  ResourceLimits,
  RuleOptions,
  RunOptions,
  RuntimeName,
  SandboxOptions,
  SyncMode,
  TlsOptions,
  UploadDirectoryOptions,
  UploadProgress,
} from "./model/options.ts";
export type {
  ApiKey,
  ApplyOutcome,
  ApplyResult,
  AuditEvent,
  BatchResult,
  Change,
  ChangeCounts,
  ChangeKind,
  Codebase,
  CommandEnd,
  CommandEvent,
  DirectoryUploadResult,
  EntryKind,
  FileChange,
  FileDiff,
  FileInfo,
  JsonValue,
  PathExplanation,
  Role,
  RuleCandidate,
  RunResult,
  SandboxInfo,
  SandboxStatus,
  ServerInfo,
  SessionInfo,
  UploadResult,
  Version,
  VersionOrigin,
} from "./model/records.ts";
export type {
  ApplyOptions,
  BatchEntry,
  BatchOptions,
  ChangesOptions,
  Content,
  CreateCodebaseRequest,
  CreatedKey,
  CreateKeyRequest,
  CreateSandboxRequest,
  CreateSessionOptions,
  DiffOptions,
  DownloadArchiveOptions,
  EventFilter,
  ExecOptions,
  InteractiveOptions,
  ListCodebasesOptions,
  ListEventsOptions,
  ListFilesOptions,
  ListSandboxesOptions,
  ManifestEntry,
  OpenTerminalOptions,
  PathsOptions,
  RecursiveOptions,
  SessionExecOptions,
  SessionStreamOptions,
  TerminalConnection,
  TerminalSize,
  UploadArchiveOptions,
  UploadFileOptions,
  VersionOptions,
  WatchEventsOptions,
  WriteFileOptions,
} from "./model/requests.ts";
export { type ProjectPolicy, ProjectPolicyError, readProjectPolicy } from "./project/index.ts";
export { DiffListing } from "./sandbox/diff-listing.ts";
export type { EventsOptions } from "./sandbox/events.ts";
export { Execution } from "./sandbox/execution/execution.ts";
export { FileWatch } from "./sandbox/file-watch.ts";
export {
  type FileStat,
  type ReadDirectoryOptions,
  type ReadFileOptions,
  type RemoveOptions,
  SandboxFiles,
  type TextEncodingName,
  type WriteOptions,
} from "./sandbox/files.ts";
export type { CreateOptions, FromCodebaseOptions } from "./sandbox/opening/from-codebase.ts";
export type { FromLocalOptions, UploadChoice } from "./sandbox/opening/from-local.ts";
export type { GetOrCreateOptions } from "./sandbox/opening/get-or-create.ts";
export type { ConnectOptions, OpenOptions } from "./sandbox/opening/kit.ts";
export { SandboxPermissions } from "./sandbox/permissions.ts";
export { type DestroyOptions, Sandbox, type TerminalOptions } from "./sandbox/sandbox.ts";
export { Session } from "./sandbox/session.ts";
export { Terminal } from "./sandbox/terminal.ts";
