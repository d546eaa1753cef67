import type { Level, Rule } from "@agentfense/permission";
import type { CodeResult } from "./code-result.ts";
import type { NetworkMode, NetworkRule, ResourceLimits, RuntimeName, SecretPlace, SyncMode } from "./options.ts";

export type SandboxStatus = "pending" | "running" | "paused" | "stopped" | "error";

export interface SandboxInfo {
  readonly id: string;
  readonly codebaseId: string;
  readonly ownerId: string;
  readonly status: SandboxStatus;
  /** Why it is in error; "idle" when it paused by itself, and goes on with the next command; else "". */
  readonly statusReason: string;
  readonly permissions: readonly Rule[];
  readonly labels: Readonly<Record<string, string>>;
  readonly runtime: RuntimeName | "mock";
  readonly image: string;
  readonly resources: ResourceLimits;
  readonly network: NetworkMode;
  /** What it may reach when its network is filtered; those of presets included. */
  readonly networkRules: readonly NetworkRule[];
  /** The names of the secrets that it uses. */
  readonly secrets: readonly string[];
  readonly sync: SyncMode;
  /** The version it is pinned to; 0 follows the newest. */
  readonly codebaseVersion: number;
  readonly revocable: boolean;
  /** It pauses when nothing was asked of it for so long; 0: never. */
  readonly idlePauseMs: number;
  /** The home it was given; "": it has one of its own. */
  readonly home: string;
  /** Where its workspace is too, as the home of its commands; "": it is no home. */
  readonly workspaceHome: string;
  /** At its expiry it is paused and kept, and not destroyed. */
  readonly pauseAtExpiry: boolean;
  readonly createdAt: Date;
  readonly startedAt?: Date;
  readonly stoppedAt?: Date;
  readonly expiresAt?: Date;
}

/** A home that outlives sandboxes. */
/** What a sandbox had at one moment. */
export interface SnapshotInfo {
  readonly id: string;
  /** The sandbox that it is of, which may be gone. */
  readonly sandboxId: string;
  readonly ownerId: string;
  readonly codebaseId: string;
  /** The version that the sandbox was pinned to; 0: the newest, whichever that is. */
  readonly codebaseVersion: number;
  readonly label: string;
  readonly createdAt: Date;
}

export interface HomeInfo {
  readonly name: string;
  readonly ownerId: string;
  /** The sandbox that runs with it, or "". */
  readonly sandboxId: string;
}

/** All that can be known of a secret that the server keeps. */
export interface SecretInfo {
  readonly name: string;
  readonly ownerId: string;
  readonly hosts: readonly string[];
  readonly in: SecretPlace;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** How a command ended. */
export interface CommandEnd {
  /** 128 + n after signal n. */
  readonly exitCode: number;
  /** "SIGKILL" …, when the exit code speaks of one. */
  readonly signal: string | undefined;
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  readonly durationMs: number;
  /** It ended the shell of its session. */
  readonly sessionClosed: boolean;
  /** The codebase's version that the sync after it made; 0 when there was nothing to write. */
  readonly syncedVersion: number;
  /** What the sync left out, each as a sentence. */
  readonly syncProblems: readonly string[];
}

/** What a command printed, and how it ended. A non-zero exit code and a timeout are results. */
export interface RunResult extends CommandEnd {
  readonly command: string;
  /** Exit code 0, in time. */
  readonly success: boolean;
  /** UTF-8; what is not, is replaced. */
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: Uint8Array;
  readonly stderrBytes: Uint8Array;
  /** Some output was beyond the limit and is lost. */
  readonly truncated: boolean;
}

export type CommandEvent =
  | { readonly kind: "stdout" | "stderr"; readonly data: Uint8Array }
  | { readonly kind: "exit"; readonly end: CommandEnd };

/** `started` by `spawn`; the others are in the hands of whoever runs them. */
export type ProcessKind = "started" | "command" | "session" | "terminal" | "context";

/** How a process ended. */
export interface ProcessEnd extends Pick<CommandEnd, "exitCode" | "signal" | "timedOut" | "outOfMemory"> {}

export interface ProcessInfo {
  /** From 1 on, and never given again as long as the sandbox exists. */
  readonly number: number;
  readonly sandboxId: string;
  /** "": none. */
  readonly tag: string;
  readonly ownerId: string;
  readonly kind: ProcessKind;
  /** As somebody would type it; the beginning of a long one. */
  readonly command: string;
  readonly state: "running" | "ended";
  readonly startedAt: Date;
  readonly endedAt?: Date;
  /** Absent while it runs. */
  readonly end?: ProcessEnd;
}

/** `lostBytes` of the same stream came before the data and were not kept. */
export type ProcessEvent =
  | { readonly kind: "stdout" | "stderr" | "terminal"; readonly data: Uint8Array; readonly lostBytes: number }
  | { readonly kind: "exit"; readonly end: ProcessEnd };

/** `typescript` is JavaScript whose types are taken away first; they share contexts. */
export type CodeLanguage = "python" | "javascript" | "typescript" | "bash";

export interface CodeContextInfo {
  readonly id: string;
  readonly sandboxId: string;
  readonly language: CodeLanguage;
  /** What runs the code, by its own word: "ipython", "python", "node 24.11.0", "/bin/bash". */
  readonly interpreter: string;
  readonly workdir: string;
  /** The one that code of this language gets when it names none. */
  readonly isDefault: boolean;
  readonly createdAt: Date;
  /** Pieces of code since its interpreter started. */
  readonly executionCount: number;
  readonly busy: boolean;
}

export interface CodeError {
  readonly name: string;
  readonly value: string;
  readonly traceback: string;
}

/** How a piece of code ended. */
export interface CodeEnd {
  /** The exit code of a shell's last command; otherwise 0, or 1 after an error. */
  readonly exitCode: number;
  readonly timedOut: boolean;
  /** Something was beyond the limit of output and is lost. */
  readonly truncated: boolean;
  readonly outOfMemory: boolean;
  /** The interpreter has ended, with all that it knew; the next code gets a new one. */
  readonly contextLost: boolean;
  readonly durationMs: number;
  /** The codebase's version that the sync after it made; 0 when there was nothing to write. */
  readonly syncedVersion: number;
  /** What the sync left out, each as a sentence. */
  readonly syncProblems: readonly string[];
}

/** `restarted`: why the names of earlier code are gone. */
export interface CodeStart {
  readonly contextId: string;
  readonly executionCount: number;
  readonly restarted: string | undefined;
}

export type CodeEvent =
  | { readonly kind: "started"; readonly start: CodeStart }
  | { readonly kind: "stdout" | "stderr"; readonly data: Uint8Array }
  | { readonly kind: "result"; readonly result: CodeResult }
  | { readonly kind: "error"; readonly error: CodeError }
  | { readonly kind: "end"; readonly end: CodeEnd };

export interface SessionInfo {
  readonly id: string;
  readonly sandboxId: string;
  readonly status: "active" | "closed";
  readonly shell: string;
  /** closed, exited, killed, idle, stopped or server_restarted; "" while it is active. */
  readonly closeReason: string;
  readonly createdAt: Date;
  readonly closedAt?: Date;
}

export interface Codebase {
  readonly id: string;
  readonly name: string;
  readonly ownerId: string;
  /** Bytes in regular files. */
  readonly size: number;
  readonly fileCount: number;
  /** Grows by one with every change. */
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type EntryKind = "file" | "directory" | "symlink";

/** A file of a codebase, or of a sandbox's view (then with `permission`). */
export interface FileInfo {
  readonly path: string;
  readonly name: string;
  readonly kind: EntryKind;
  readonly size: number;
  readonly mode: number;
  readonly modifiedAt: Date;
  /** Where a symbolic link leads, else "". */
  readonly target: string;
  /** SHA-256; "" in a view. */
  readonly sha256: string;
  readonly permission?: Exclude<Level, "none">;
  /** Extended attributes by their names without "user."; of a view, where they were asked for. */
  readonly attributes?: Readonly<Record<string, string>>;
}

export interface UploadResult {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
  readonly version: number;
}

export interface BatchResult {
  readonly version: number;
  readonly filesChanged: number;
  readonly bytesReceived: number;
}

export interface DirectoryUploadResult extends BatchResult {
  readonly files: number;
  readonly bytes: number;
  readonly filesSent: number;
  readonly bytesSent: number;
  /** What stayed behind and why, each as a sentence. */
  readonly leftOut: readonly string[];
}

export type VersionOrigin = "upload" | "sync" | "rollback" | "delete" | "rename";

export interface Version {
  readonly codebaseId: string;
  readonly version: number;
  readonly origin: VersionOrigin;
  readonly sandboxId: string;
  readonly message: string;
  readonly createdAt: Date;
  readonly filesChanged: number;
  readonly size: number;
  readonly fileCount: number;
  readonly changes: readonly {
    readonly kind: ChangeKind;
    readonly path: string;
    readonly size: number;
    /** A machine may run or trust it without being asked to, or it is a link out of the codebase. */
    readonly sensitive: boolean;
  }[];
  readonly conflicts: readonly {
    readonly path: string;
    readonly replacedVersion: number;
    readonly replacedSandboxId: string;
  }[];
}

export type ChangeKind = "added" | "modified" | "deleted" | "renamed";

export interface Change {
  readonly kind: ChangeKind;
  /** "/src/a.ts": relative to the workspace. */
  readonly path: string;
  /** Where it was, when it was renamed; else "". */
  readonly oldPath: string;
  readonly type: EntryKind | "other";
  readonly size: number;
  /** The host may run or trust it without being asked to, or it is a link out of the workspace; of a folded one, something in it. */
  readonly sensitive: boolean;
  /** In a folded list: this change stands for all ignored changes in its directory, so many of each kind. */
  readonly folded?: ChangeCounts;
}

export interface ChangeCounts {
  readonly added: number;
  readonly modified: number;
  readonly deleted: number;
  readonly renamed: number;
}

export interface FileDiff {
  readonly change: Change;
  /** The unified diff; for a binary file, or one that is too large, only that it differs, unless a patch was asked for. */
  readonly unified: string;
  /** The content is not shown as lines. */
  readonly binary: boolean;
}

export interface ApplyOutcome {
  readonly change: Change;
  readonly applied: boolean;
  /** Why not, or what else there is to know; else "". */
  readonly reason: string;
  /** As in the change. */
  readonly sensitive: boolean;
  /** It replaced newer work of somebody else. */
  readonly conflict: boolean;
}

export interface ApplyResult {
  /** 0 when nothing was written, and where the files have no versions. */
  readonly version: number;
  readonly outcomes: readonly ApplyOutcome[];
}

export interface RuleCandidate {
  /** Index into the sandbox's rules. */
  readonly index: number;
  readonly rule: Rule;
  readonly reason: string;
}

export interface PathExplanation {
  readonly path: string;
  readonly permission: Level;
  /** Absent when no rule matches and the path is hidden by default. */
  readonly deciding: RuleCandidate | undefined;
  readonly losing: readonly RuleCandidate[];
  /** The whole answer in words. */
  readonly text: string;
}

export interface AuditEvent {
  readonly sequence: number;
  readonly time: Date;
  /** sandbox_created, command_executed, permission_denied … */
  readonly type: string;
  readonly level: "info" | "warn" | "error";
  readonly ownerId: string;
  readonly keyId: string;
  readonly sandboxId: string;
  readonly codebaseId: string;
  readonly sessionId: string;
  readonly data: Readonly<Record<string, JsonValue>>;
  readonly hash: string;
}

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/** A change of a watched path, in the words of node:fs. */
export interface FileChange {
  /** `rename`: a name came or went; `change`: content or attributes did. */
  readonly eventType: "rename" | "change";
  /** Relative to what is watched. */
  readonly filename: string;
  /** What it was; absent where that is not known. */
  readonly cause?: FileChangeCause;
}

export type FileChangeCause = "made" | "removed" | "moved-away" | "moved-here" | "written" | "attributes";

export type Role = "admin" | "user" | "read-only";

export interface ServerInfo {
  readonly version: string;
  /** The default one first. */
  readonly runtimes: readonly (RuntimeName | "mock")[];
  /** Limits that this server cannot enforce, each as a sentence. */
  readonly degradations: readonly string[];
  readonly keysRequired: boolean;
  readonly ownerId: string;
  readonly role: Role;
}

export interface ApiKey {
  readonly id: string;
  readonly ownerId: string;
  readonly role: Role;
  readonly name: string;
  readonly createdAt: Date;
  readonly revokedAt?: Date;
  readonly lastUsedAt?: Date;
}

/** Where a port of a sandbox is reached. */
export interface PortInfo {
  readonly sandboxId: string;
  readonly port: number;
  /** For programs: with a key, or the token as the header `X-Agentfense-Token`. */
  readonly url: string;
  /** For browsers on the server's machine: an origin of its own, with the token in it. */
  readonly hostUrl: string;
  readonly token: string;
  readonly expiresAt: Date;
}
