import type { Caller } from "../caller.ts";
import type { Page, PageRequest } from "../page.ts";
import type { CodebaseRecord, ConflictRecord, EntryRecord, VersionRecord } from "../store/store.ts";

export interface FileEntry {
  readonly kind: "file";
  readonly path: string;
  readonly mode: number;
  readonly size: number;
  readonly sha256: string;
}

/** What a batch says about one path. */
export type ManifestEntry =
  | FileEntry
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string }
  | { readonly kind: "absent"; readonly path: string };

/** A piece of a batch: an entry, or more content of the file before. `mode` 0 means the default, `sha256` "" unchecked. */
export interface BatchPiece {
  readonly entry?: ManifestEntry;
  readonly data?: Uint8Array;
}

export interface BatchOptions {
  /** Everything that no entry names is removed. */
  readonly replaceAll?: boolean;
  /** Refused (VERSION_CONFLICT) unless the codebase is at this version. */
  readonly baseVersion?: number | undefined;
  readonly message?: string;
  readonly signal?: AbortSignal;
}

export interface BatchResult {
  readonly version: number;
  readonly filesChanged: number;
  readonly bytesReceived: number;
}

export interface UploadOptions {
  /** 0: that of the file it replaces, or 0644. */
  readonly mode?: number;
  /** Checked when given (UPLOAD_MISMATCH). */
  readonly totalSize?: number | undefined;
  /** "": unchecked. */
  readonly sha256?: string;
  readonly signal?: AbortSignal;
}

export interface VersionChange {
  readonly kind: "added" | "modified" | "deleted";
  readonly path: string;
  readonly size: number;
  /** A machine may run or trust it without being asked to, or it is a link out of the codebase. */
  readonly sensitive: boolean;
}

/** A finished change of a codebase, for those who show it: "src/a.ts", without slashes at the ends. */
export interface CodebaseChange {
  readonly codebaseId: string;
  readonly version: number;
  readonly paths: readonly string[];
  /** The sandbox whose sync it was, else "". */
  readonly sandboxId: string;
  readonly createdAtMs: number;
}

/**
 * The codebases: their files, versions and what changes them. A foreign codebase is CODEBASE_NOT_FOUND. Paths are relative
 * to the root ("src/a.ts", a leading slash is tolerated) and checked before anything is done (INVALID_ARGUMENT).
 */
export interface Codebases {
  create(caller: Caller, request: { readonly name: string; readonly ownerId: string }): Promise<CodebaseRecord>;
  get(caller: Caller, id: string): Promise<CodebaseRecord>;
  list(caller: Caller, query: PageRequest & { readonly ownerId: string }): Promise<Page<CodebaseRecord>>;
  /** Does not ask whether sandboxes use it: that is the sandbox manager's to know. */
  delete(caller: Caller, id: string): Promise<void>;

  /** The content is only read after the caller's right to the codebase is known. */
  upload(
    caller: Caller,
    id: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    options?: UploadOptions,
  ): Promise<{ readonly size: number; readonly sha256: string; readonly version: number }>;
  link(caller: Caller, id: string, path: string, target: string): Promise<{ readonly version: number }>;
  /** Paths of the files among these whose content the server lacks. */
  compare(caller: Caller, id: string, entries: readonly ManifestEntry[]): Promise<readonly string[]>;
  batch(caller: Caller, id: string, pieces: AsyncIterable<BatchPiece>, options?: BatchOptions): Promise<BatchResult>;
  uploadArchive(
    caller: Caller,
    id: string,
    tar: AsyncIterable<Uint8Array>,
    options?: BatchOptions,
  ): Promise<BatchResult>;
  deleteFile(
    caller: Caller,
    id: string,
    path: string,
    options?: { readonly recursive?: boolean },
  ): Promise<BatchResult>;
  renameFile(caller: Caller, id: string, from: string, to: string): Promise<BatchResult>;

  /** `version` 0: the newest. */
  listFiles(
    caller: Caller,
    id: string,
    query: PageRequest & { readonly path: string; readonly recursive: boolean; readonly version: number },
  ): Promise<Page<EntryRecord>>;
  /** Regular files only. */
  download(
    caller: Caller,
    id: string,
    path: string,
    options?: { readonly version?: number; readonly signal?: AbortSignal },
  ): Promise<{ readonly entry: EntryRecord; readonly content: AsyncIterable<Uint8Array> }>;
  downloadArchive(
    caller: Caller,
    id: string,
    query: { readonly path: string; readonly version: number; readonly signal?: AbortSignal },
  ): Promise<AsyncIterable<Uint8Array>>;
  listVersions(caller: Caller, id: string, query: PageRequest): Promise<Page<VersionRecord>>;
  getVersion(
    caller: Caller,
    id: string,
    version: number,
  ): Promise<{ readonly version: VersionRecord; readonly changes: readonly VersionChange[] }>;
  rollback(caller: Caller, id: string, version: number): Promise<VersionRecord>;
}

/** What a sandbox wants to write into its codebase; the content waits in a staging directory of the codebase. */
export interface StagedEntry {
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink" | "absent";
  readonly mode: number;
  readonly target: string;
  readonly size: number;
  readonly sha256: string;
  /** Name of the content in the staging directory, for files. */
  readonly staged: string;
  /** When the sandbox made its version of the path, by the server's clock: decides what counts as newer work. */
  readonly madeAtMs: number;
}

export interface SyncResult {
  readonly version: number;
  readonly conflicts: readonly ConflictRecord[];
  readonly skipped: readonly string[];
  readonly superseded: readonly string[];
}

/** A codebase that is a directory of the host: it has no versions, and what sandboxes change goes straight into it. */
export interface DirectCodebase {
  /**
   * One sync: `write` changes the directory and gives the paths ("src/a.ts") that it changed there; no other sandbox writes
   * meanwhile. Resolves when those that show the directory have taken note.
   */
  write(sandboxId: string, write: (directory: string) => Promise<readonly string[]>): Promise<void>;
}

/** What the sandbox manager needs of the codebases beyond what clients do. */
export interface CodebaseLayers {
  /** Undefined: it has versions, see `sync`. */
  direct(codebaseId: string): DirectCodebase | undefined;
  /** The directory to mount, and how to let go of it. A pinned version is put together when it is first asked for. */
  open(codebaseId: string, version: number): Promise<{ readonly directory: string; release(): Promise<void> }>;
  /**
   * One sync: `collect` copies what it wants into the staging directory and gives the entries, which become one version.
   * Nobody else changes the codebase meanwhile. No entry: no version (undefined). `skipped` are paths that the codebase
   * cannot hold, or not where they are: a name that is no text, a directory that is not empty. `superseded` are paths where
   * the sandbox has what others have replaced meanwhile, and nothing of its own. Version 0: nothing else.
   */
  sync(
    codebaseId: string,
    sandboxId: string,
    collect: (stagingDirectory: string) => Promise<readonly StagedEntry[]>,
  ): Promise<SyncResult | undefined>;
  /** Called after every change, in order, before the call that made it returns: mounts must not show what was. */
  onChange(listener: (change: CodebaseChange) => Promise<void>): Disposable;
}
