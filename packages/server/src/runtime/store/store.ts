import type { Rule } from "@agentfense/permission";
import type { NetworkRule } from "../../isolation/network/policy.ts";
import type { Role } from "../caller.ts";
import type { Growth } from "./growth.ts";

// What the server remembers across restarts, as its users need it. The SQLite store keeps to this, and one over another
// database can: every method is asynchronous, and each is one transaction.

export interface CodebaseRecord {
  readonly id: string;
  readonly name: string;
  readonly ownerId: string;
  /** Bytes in regular files. */
  readonly size: number;
  /** Regular files and symbolic links. */
  readonly fileCount: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** 0: nothing was ever uploaded. */
  readonly version: number;
}

/** One path of a codebase. The manifest in the store is the truth about names, modes and hashes; the disk has the content. */
export interface EntryRecord {
  /** "src/a.ts": no slash at either end, never empty. */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink";
  readonly mode: number;
  /** Of a file, else 0. */
  readonly size: number;
  /** Of a file, in hexadecimal, else "". */
  readonly sha256: string;
  /** Of a symbolic link, else "". */
  readonly target: string;
  readonly modifiedAtMs: number;
  /** The version that made it what it is. */
  readonly version: number;
}

export type VersionOrigin = "upload" | "sync" | "rollback" | "delete" | "rename";

export interface ConflictRecord {
  readonly path: string;
  readonly replacedVersion: number;
  /** Whose sync it was, else "". */
  readonly replacedSandboxId: string;
}

export interface VersionRecord {
  readonly codebaseId: string;
  readonly version: number;
  readonly origin: VersionOrigin;
  readonly sandboxId: string;
  readonly message: string;
  readonly createdAtMs: number;
  readonly filesChanged: number;
  readonly size: number;
  readonly fileCount: number;
  readonly conflicts: readonly ConflictRecord[];
}

/** One path that a version changed. `before` is what it replaced, `after` what it made. */
export interface VersionChangeRecord {
  readonly version: number;
  readonly path: string;
  readonly before?: EntryRecord | undefined;
  readonly after?: EntryRecord | undefined;
  /** Where the codebase's disk keeps the content of `before`, when that is a file. */
  readonly keptAs: string;
}

/** A change of a codebase that was decided and may not be on the disk yet. There is at most one per codebase. */
export interface JournalRecord {
  readonly codebaseId: string;
  readonly version: VersionRecord;
  readonly changes: readonly VersionChangeRecord[];
  /** What the disk has to do, as the codebase store wrote it. */
  readonly plan: unknown;
}

export interface OwnerUsage extends Growth {
  readonly codebases: number;
}

/** How much of its past a codebase keeps; 0 is no limit. */
export interface Retention {
  /** The newest one is among them. */
  readonly versions: number;
  /**
   * What the versions replaced, as the disk has it: content in blocks of 4 KiB, and half a KiB for the record of each path.
   * A rename keeps a second name and no content. The version before the newest stays, whatever it takes.
   */
  readonly bytes: number;
}

/** What came of dropping old versions. */
export interface DroppedVersions {
  /** Versions whose kept content nobody can ask for any more. */
  readonly released: readonly number[];
  /** The oldest version that is left; 0: there is none at all. */
  readonly oldest: number;
  /** What those that are left keep. */
  readonly keptBytes: number;
  /** There is more to drop: a call does a part of it, so that others get their turn. */
  readonly hasMore: boolean;
}

export interface EntryQuery {
  /** "" is the root. */
  readonly directory: string;
  readonly recursive: boolean;
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

export interface CodebaseMetadata {
  insertCodebase(record: CodebaseRecord): Promise<void>;
  codebase(id: string): Promise<CodebaseRecord | undefined>;
  /** In the order of (createdAtMs, id), after the given key. */
  listCodebases(query: {
    readonly ownerId?: string | undefined;
    readonly after?: readonly [createdAtMs: number, id: string] | undefined;
    readonly limit: number;
  }): Promise<readonly CodebaseRecord[]>;
  /** With its manifest, versions and journal. */
  deleteCodebase(id: string): Promise<void>;
  /** What an owner has in all codebases together, in their newest versions. */
  ownerUsage(ownerId: string): Promise<OwnerUsage>;

  entry(codebaseId: string, path: string): Promise<EntryRecord | undefined>;
  /** In the order given, absent ones undefined. */
  entries(codebaseId: string, paths: readonly string[]): Promise<readonly (EntryRecord | undefined)[]>;
  /** A file of the codebase's head with this content, if there is one, for each hash. */
  entriesByHash(codebaseId: string, sha256: readonly string[]): Promise<ReadonlyMap<string, EntryRecord>>;
  /** Direct children of a directory ("" is the root), or all below it, in path order, after a path. */
  listEntries(codebaseId: string, query: EntryQuery): Promise<readonly EntryRecord[]>;

  /** Writes the journal: from here on the change happens, crash or not. */
  beginChange(journal: JournalRecord): Promise<void>;
  /**
   * It is carried out: the manifest, the version and the counters say so too. The version is as old
   * as that, when the time is given: whoever copied something before may have copied what was.
   */
  finishChange(codebaseId: string, finishedAtMs?: number): Promise<CodebaseRecord>;
  /** It would outlast a loss of power: the journal goes, and the next change may begin. */
  settleChange(codebaseId: string): Promise<void>;
  /** Those that are not finished, or not settled: of these the codebase has the version already. */
  unsettledChanges(): Promise<readonly JournalRecord[]>;

  version(codebaseId: string, version: number): Promise<VersionRecord | undefined>;
  /** Newest first, those before the given one. */
  listVersions(
    codebaseId: string,
    query: { readonly before?: number | undefined; readonly limit: number },
  ): Promise<readonly VersionRecord[]>;
  changesOf(codebaseId: string, version: number): Promise<readonly VersionChangeRecord[]>;
  /**
   * Forgets the oldest versions beyond what is kept, with their changes. The oldest that is left still has its own changes
   * to show, but what they replaced is released: no version is left that had it.
   */
  dropVersions(codebaseId: string, keep: Retention): Promise<DroppedVersions>;
  /**
   * For each path changed after `version`: its first such change, whose `before` is what the path was then. Of a version that
   * was dropped this is not the whole truth: whoever needs that asks for the version after.
   */
  firstChangesAfter(
    codebaseId: string,
    version: number,
    query: { readonly path?: string; readonly directory?: string },
  ): Promise<readonly VersionChangeRecord[]>;
}

export type SandboxRecordStatus = "PENDING" | "RUNNING" | "PAUSED" | "STOPPED" | "ERROR";
export type SyncMode = "on-exec" | "manual" | "never";
export type NetworkName = "none" | "filtered" | "private" | "host";
export type RuntimeName = "bwrap" | "docker" | "mock";

export interface ResourceRecord {
  readonly memoryBytes?: number;
  readonly cpuQuota?: number;
  readonly cpuShares?: number;
  readonly pidsLimit?: number;
  readonly diskBytes?: number;
  readonly diskFiles?: number;
  readonly outputBytes?: number;
}

export interface SandboxRecord {
  readonly id: string;
  readonly ownerId: string;
  readonly codebaseId: string;
  /** 0: the newest. */
  readonly codebaseVersion: number;
  readonly rules: readonly Rule[];
  readonly status: SandboxRecordStatus;
  /** Of ERROR, and of STOPPED when nobody asked for it: why; of PAUSED: "idle" when it paused by itself. */
  readonly statusReason: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly runtime: RuntimeName;
  readonly image: string;
  readonly network: NetworkName;
  /** Of a filtered network: what it may reach. */
  readonly networkRules: readonly NetworkRule[];
  readonly secrets: readonly SandboxSecretRecord[];
  readonly sync: SyncMode;
  readonly revocable: boolean;
  /** The home it uses: a name of the owner's, or a directory where those are the program's; "": one of its own. */
  readonly home: string;
  /** Where its workspace is too, as the home of its processes; "": it is no home. */
  readonly workspaceHome: string;
  /** At its expiry it is paused and kept. */
  readonly pauseAtExpiry: boolean;
  readonly resources: ResourceRecord;
  readonly env: Readonly<Record<string, string>>;
  /** So long nothing is asked of it before it pauses by itself; 0: never. */
  readonly idlePauseMs: number;
  /** No process has had a higher number that its starter was told. */
  readonly lastProcessNumber: number;
  readonly createdAtMs: number;
  readonly startedAtMs?: number;
  readonly stoppedAtMs?: number;
  readonly expiresAtMs?: number;
}

/** A secret that a sandbox uses: its owner's of this name, or one of its own. */
export interface SandboxSecretRecord {
  readonly name: string;
  readonly own?: Pick<SecretRecord, "hosts" | "place" | "sealed">;
}

/** A secret that an owner keeps. */
export interface SecretRecord {
  readonly ownerId: string;
  readonly name: string;
  readonly hosts: readonly string[];
  /** "header x-api-key" */
  readonly place: string;
  /** The value, as secrets/sealing.ts writes it. Nothing here can read it. */
  readonly sealed: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface SessionRecord {
  readonly id: string;
  readonly sandboxId: string;
  readonly ownerId: string;
  readonly status: "ACTIVE" | "CLOSED";
  readonly shell: string;
  readonly createdAtMs: number;
  readonly closedAtMs?: number;
  readonly closeReason: string;
}

/** What a sandbox that is made of a snapshot has of the one that the snapshot is of, unless it is given its own. */
export type InheritedSettings = Pick<
  SandboxRecord,
  | ("rules" | "runtime" | "image" | "network" | "networkRules" | "resources" | "env" | "sync")
  | ("revocable" | "workspaceHome" | "idlePauseMs")
>;

export interface SnapshotRecord {
  readonly id: string;
  readonly ownerId: string;
  /** The sandbox that it is of, which may be gone. */
  readonly sandboxId: string;
  readonly codebaseId: string;
  /** The version that the sandbox was pinned to; 0: the newest. */
  readonly codebaseVersion: number;
  readonly label: string;
  /** The topmost layer that it is made of; what that lies on the disk says. */
  readonly layer: string;
  readonly settings: InheritedSettings;
  readonly createdAtMs: number;
}

export interface SnapshotMetadata {
  /** Refused (false) when the owner already has `maxPerOwner` (0: no limit); counted and inserted as one. */
  insertSnapshot(record: SnapshotRecord, maxPerOwner: number): Promise<boolean>;
  snapshot(id: string): Promise<SnapshotRecord | undefined>;
  /** False: there is none. */
  deleteSnapshot(id: string): Promise<boolean>;
  /** In the order of (createdAtMs, id). */
  listSnapshots(query: {
    readonly ownerId?: string | undefined;
    readonly sandboxId?: string | undefined;
    readonly codebaseId?: string | undefined;
  }): Promise<readonly SnapshotRecord[]>;
}

type Changing =
  | "status"
  | "statusReason"
  | "rules"
  | "networkRules"
  | "secrets"
  | "startedAtMs"
  | "stoppedAtMs"
  | "expiresAtMs"
  | "lastProcessNumber";
/** What may change of a sandbox's record. */
export type SandboxChanges = Partial<Pick<SandboxRecord, Changing>>;

export interface SandboxMetadata {
  /** Refused (false) when the owner already has `maxPerOwner` (0: no limit); counted and inserted as one. */
  insertSandbox(record: SandboxRecord, maxPerOwner: number): Promise<boolean>;
  sandbox(id: string): Promise<SandboxRecord | undefined>;
  updateSandbox(id: string, changes: SandboxChanges): Promise<SandboxRecord | undefined>;
  /** With its sessions. */
  deleteSandbox(id: string): Promise<void>;
  /** In the order of (createdAtMs, id), after the given key. */
  listSandboxes(query: {
    readonly ownerId?: string | undefined;
    readonly codebaseId?: string | undefined;
    readonly status?: SandboxRecordStatus | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly after?: readonly [createdAtMs: number, id: string] | undefined;
    readonly limit?: number | undefined;
  }): Promise<readonly SandboxRecord[]>;

  insertSession(record: SessionRecord): Promise<void>;
  session(id: string): Promise<SessionRecord | undefined>;
  /** False: it was closed before. */
  closeSession(id: string, closedAtMs: number, reason: string): Promise<boolean>;
  closeAllSessions(closedAtMs: number, reason: string): Promise<void>;
  /** In the order of (createdAtMs, id). */
  listSessions(sandboxId: string): Promise<readonly SessionRecord[]>;
}

export type EventLevel = "info" | "warn" | "error";

export interface EventDraft {
  readonly timeMs: number;
  readonly type: string;
  readonly level: EventLevel;
  readonly ownerId: string;
  readonly keyId: string;
  readonly sandboxId: string;
  readonly codebaseId: string;
  readonly sessionId: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface EventRecord extends EventDraft {
  readonly sequence: number;
  readonly hash: string;
}

export interface EventQuery {
  readonly ownerId?: string | undefined;
  readonly sandboxId?: string | undefined;
  readonly codebaseId?: string | undefined;
  readonly types?: readonly string[] | undefined;
  readonly fromMs?: number | undefined;
  readonly untilMs?: number | undefined;
  readonly afterSequence?: number | undefined;
  readonly limit: number;
}

/** Where the stored chain begins: what retention removed is covered by the hash of the last removed event. */
export interface ChainAnchor {
  readonly sequence: number;
  readonly hash: string;
}

export interface EventMetadata {
  /** Numbers, chains and stores them, in order. */
  appendEvents(drafts: readonly EventDraft[]): Promise<readonly EventRecord[]>;
  listEvents(query: EventQuery): Promise<readonly EventRecord[]>;
  chainAnchor(): Promise<ChainAnchor>;
  /** The newest event ever stored, which the end of the chain must be. */
  chainHead(): Promise<ChainAnchor>;
  /** Removes the oldest: those before a time, and as many as exceed the count. Gives how many went. */
  trimEvents(query: { readonly beforeMs?: number; readonly keep?: number }): Promise<number>;
}

export interface KeyRecord {
  readonly id: string;
  readonly ownerId: string;
  readonly role: Role;
  readonly name: string;
  /** SHA-256 of the secret, in hexadecimal. */
  readonly secretHash: string;
  readonly createdAtMs: number;
  readonly revokedAtMs?: number;
  readonly lastUsedAtMs?: number;
}

export interface KeyMetadata {
  insertKey(record: KeyRecord): Promise<void>;
  key(id: string): Promise<KeyRecord | undefined>;
  listKeys(): Promise<readonly KeyRecord[]>;
  /** False: there is none with this id. */
  revokeKey(id: string, revokedAtMs: number): Promise<boolean>;
  touchKey(id: string, lastUsedAtMs: number): Promise<void>;
}

export interface SecretMetadata {
  /** In place of the owner's of that name, of which it keeps the age. Undefined: the owner has `maxPerOwner` others (0: no limit). */
  putSecret(record: SecretRecord, maxPerOwner: number): Promise<SecretRecord | undefined>;
  secret(ownerId: string, name: string): Promise<SecretRecord | undefined>;
  /** By owner and name. */
  listSecrets(ownerId?: string): Promise<readonly SecretRecord[]>;
  /** False: there is none. */
  deleteSecret(ownerId: string, name: string): Promise<boolean>;
}

export interface MetadataStore
  extends CodebaseMetadata,
    SandboxMetadata,
    SnapshotMetadata,
    EventMetadata,
    KeyMetadata,
    SecretMetadata,
    AsyncDisposable {}
