import type { Socket } from "node:net";
import type { Rule } from "@agentfense/permission";
import type { TerminalSize } from "../../isolation/backend/backend.ts";
import type { ChangeCounts } from "../../isolation/changes/list.ts";
import type { CodeContext, CodeContextRequest, CodeEvent, CodeOutcome, CodeRequest } from "../../isolation/code/api.ts";
import type { Cancellable, ExecEvent, ExecOutcome, ExecRequest, ExecResult } from "../../isolation/exec/api.ts";
import type { NetworkList } from "../../isolation/network/list.ts";
import type { AttachOptions, ProcessEvent, SandboxProcess, SpawnRequest } from "../../isolation/sandbox/api.ts";
import type { NewAttributes, ViewChange, ViewStat } from "../../isolation/view/api.ts";
import type { Caller } from "../caller.ts";
import type { Page, PageRequest } from "../page.ts";
import type { AskedSecret } from "../secrets/api.ts";
import type {
  NetworkName,
  ResourceRecord,
  RuntimeName,
  SandboxRecord,
  SandboxRecordStatus,
  SessionRecord,
  SnapshotRecord,
  SyncMode,
} from "../store/store.ts";

export interface CreateSandboxRequest {
  readonly codebaseId: string;
  /** 0: the newest. */
  readonly codebaseVersion: number;
  /** Types may be absent: they are inferred, and the record has what was inferred. */
  readonly rules: readonly Rule[];
  /** "": none. Its rules come first. */
  readonly preset: string;
  /** Absent: the server's default. */
  readonly expiresInMs?: number | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly runtime?: RuntimeName | undefined;
  readonly image: string;
  readonly resources: ResourceRecord;
  readonly sync?: SyncMode | undefined;
  /** Absent: filtered, if there is a list, or the server's default. */
  readonly network?: NetworkName | undefined;
  /** The list of a filtered network. */
  readonly networkList: NetworkList;
  readonly secrets: readonly AskedSecret[];
  readonly revocable: boolean;
  readonly env: Readonly<Record<string, string>>;
  /** Absent: the server's default; 0: never. */
  readonly idlePauseMs?: number | undefined;
  /** "": one of its own. */
  readonly home: string;
  /** "": the workspace is no home. */
  readonly workspaceHome: string;
  readonly pauseAtExpiry: boolean;
}

export interface HomeRecord {
  readonly name: string;
  readonly ownerId: string;
  /** The sandbox that runs with it, or "". */
  readonly sandboxId: string;
}

export type ExecCall = ExecRequest & Cancellable;

export type { ExecOutcome, SandboxProcess };

export type SpawnCall = SpawnRequest & Cancellable;

/**
 * The processes of a sandbox, which has to run. They are known by number, or by tag: the newest that has it, living before
 * ended. Those that were not spawned take a signal and can be waited for; the rest is PROCESS_UNSUITABLE.
 */
export interface SandboxProcessCalls {
  readonly ownerId: string;
  spawn(call: SpawnCall): Promise<SandboxProcess>;
  list(): readonly SandboxProcess[];
  wait(which: number | string, options?: Cancellable): Promise<SandboxProcess>;
  attach(which: number | string, options?: AttachOptions): AsyncIterable<ProcessEvent>;
  write(which: number | string, data: Uint8Array, options?: Cancellable): Promise<void>;
  closeInput(which: number | string): Promise<void>;
  /** "SIGTERM", "TERM" or "15". */
  signal(which: number | string, signal: string): Promise<void>;
  resize(which: number | string, size: TerminalSize): Promise<void>;
}

/** How a command ended, and what the sync after it has to say. */
export interface ExecEnd extends ExecOutcome {
  readonly sessionClosed: boolean;
  /** 0: nothing was written to the codebase. */
  readonly syncedVersion: number;
  readonly syncProblems: readonly string[];
}

export type ExecAnswer = ExecResult & ExecEnd;

export type ExecPart = Exclude<ExecEvent, { kind: "exit" }> | { readonly kind: "exit"; readonly end: ExecEnd };

export type { CodeContext, CodeContextRequest };

export type CodeCall = CodeRequest & Cancellable;

export type CodePart =
  | Exclude<CodeEvent, { kind: "exit" }>
  | { readonly kind: "exit"; readonly end: CodeOutcome & ExecEnd };

export interface SessionCall extends Cancellable {
  readonly command: string;
  readonly timeoutMs?: number | undefined;
}

export interface OpenTerminalRequest extends Cancellable {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly size: TerminalSize;
}

export interface CreateSessionRequest {
  /** "": the sandbox's first shell. */
  readonly shell: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly idleTimeoutMs?: number | undefined;
}

export interface SandboxChange {
  readonly kind: "added" | "modified" | "deleted" | "renamed";
  /** "/src/a.ts" */
  readonly path: string;
  readonly oldPath: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  readonly size: number;
  /** The host may run or trust it without being asked to, or it is a link out of the workspace. */
  readonly sensitive: boolean;
  /** It stands for all ignored changes of the directory: so many of each kind. */
  readonly folded?: ChangeCounts;
}

export interface ChangesRequest extends PageRequest {
  /** Directory by directory, and what the codebase ignores as one item for each directory of it, behind everything else. */
  readonly fold?: boolean;
}

export interface FileDiff {
  readonly change: SandboxChange;
  readonly unified: string;
  readonly binary: boolean;
  /** The next one goes on with this text. */
  readonly more: boolean;
}

export interface DiffRequest {
  readonly paths: readonly string[];
  /** Complete, for git apply, instead of for people. */
  readonly patch: boolean;
  readonly signal?: AbortSignal;
}

export interface ApplyRequest {
  readonly paths: readonly string[];
  readonly dryRun: boolean;
  /** What the host may run or trust without being asked to stays in the delta. */
  readonly holdExecutables?: boolean;
  readonly signal?: AbortSignal;
}

export interface ApplyOutcome {
  readonly change: SandboxChange;
  readonly applied: boolean;
  readonly reason: string;
  readonly conflict: boolean;
}

export interface ViewEntry extends ViewStat {
  readonly permission: "view" | "read" | "write";
}

export interface Explanation {
  readonly path: string;
  readonly permission: "none" | "view" | "read" | "write";
  readonly deciding: { readonly index: number; readonly rule: Rule; readonly reason: string } | undefined;
  readonly losing: readonly { readonly index: number; readonly rule: Rule; readonly reason: string }[];
  readonly text: string;
}

export interface TerminalHandle {
  readonly output: AsyncIterable<Uint8Array>;
  readonly exit: Promise<ExecEnd>;
  write(data: Uint8Array): Promise<void>;
  resize(size: TerminalSize): Promise<void>;
  /** Ends everything in it. */
  close(): Promise<void>;
}

/**
 * The sandboxes of all owners. A foreign or unknown id is SANDBOX_NOT_FOUND (SESSION_NOT_FOUND); an id of a wrong shape
 * INVALID_ARGUMENT. What needs a running sandbox fails with SANDBOX_NOT_RUNNING otherwise. Calls about one sandbox's state
 * take turns; sandboxes do not wait for each other.
 */
export interface Sandboxes {
  create(caller: Caller, request: CreateSandboxRequest, signal?: AbortSignal): Promise<SandboxRecord>;
  get(caller: Caller, id: string): Promise<SandboxRecord>;
  list(
    caller: Caller,
    query: PageRequest & {
      readonly codebaseId: string;
      readonly ownerId: string;
      readonly status?: SandboxRecordStatus | undefined;
      readonly labels: Readonly<Record<string, string>>;
    },
  ): Promise<Page<SandboxRecord>>;
  /** The same of a snapshot: what the request does not say is as it was in the sandbox that the snapshot is of. */
  createFrom(
    caller: Caller,
    snapshotId: string,
    request: CreateSandboxRequest,
    signal?: AbortSignal,
  ): Promise<SandboxRecord>;
  /** Keeps what the sandbox has now, its home included; no process notices. SNAPSHOT_REFUSED for one that syncs by itself. */
  snapshot(caller: Caller, id: string, options: { readonly label: string }): Promise<SnapshotRecord>;
  /** The oldest first. "": of all sandboxes; the caller's, or for an administrator those of this owner ("": of all). */
  listSnapshots(
    caller: Caller,
    query: { readonly sandboxId: string; readonly ownerId: string },
  ): Promise<readonly SnapshotRecord[]>;
  /** Its processes are ended; `onlyIdle`: SNAPSHOT_REFUSED when there are any. What it had since is gone. */
  restore(
    caller: Caller,
    id: string,
    options: { readonly snapshotId: string; readonly onlyIdle: boolean },
  ): Promise<SandboxRecord>;
  /** Sandboxes that were made of it stay as they are. */
  deleteSnapshot(caller: Caller, id: string): Promise<void>;
  /** New sandboxes of what this one has now, or had at a snapshot ("": now): all of them or none. */
  fork(
    caller: Caller,
    id: string,
    options: {
      readonly snapshotId: string;
      readonly count: number;
      readonly request: CreateSandboxRequest;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<readonly SandboxRecord[]>;
  start(caller: Caller, id: string, signal?: AbortSignal): Promise<SandboxRecord>;
  stop(caller: Caller, id: string): Promise<SandboxRecord>;
  /** Until `resume`, calls that need a process fail with SANDBOX_PAUSED; all others answer. Both may be repeated. */
  pause(caller: Caller, id: string): Promise<SandboxRecord>;
  resume(caller: Caller, id: string): Promise<SandboxRecord>;
  destroy(caller: Caller, id: string): Promise<void>;
  /** Homes that outlive their sandboxes: the caller's, or for an administrator those of this owner ("": of all). */
  listHomes(caller: Caller, ownerId: string): Promise<readonly HomeRecord[]>;
  /** HOME_IN_USE while a sandbox runs with it. */
  deleteHome(caller: Caller, ownerId: string, name: string): Promise<void>;
  /** Refused (CODEBASE_IN_USE, naming them) while sandboxes use it, unless forced: then they are destroyed. */
  deleteCodebase(caller: Caller, codebaseId: string, options: { readonly force: boolean }): Promise<void>;

  /** A timeout is an answer with `timedOut`; the service makes it an error of its own. */
  exec(caller: Caller, id: string, call: ExecCall): Promise<ExecAnswer>;
  execStream(caller: Caller, id: string, call: ExecCall): AsyncIterable<ExecPart>;
  openTerminal(caller: Caller, id: string, request: OpenTerminalRequest): Promise<TerminalHandle>;

  processes(caller: Caller, id: string): Promise<SandboxProcessCalls>;
  /** To a port on the loopback device of a running sandbox. */
  connect(caller: Caller, id: string, port: number, signal?: AbortSignal): Promise<Socket>;
  /** PORT_CLOSED when nothing accepts there in time; default 30 s. */
  waitForPort(
    caller: Caller,
    id: string,
    port: number,
    options: { readonly timeoutMs?: number | undefined; readonly signal?: AbortSignal },
  ): Promise<void>;

  createContext(caller: Caller, id: string, request: CodeContextRequest, signal?: AbortSignal): Promise<CodeContext>;
  listContexts(caller: Caller, id: string): Promise<readonly CodeContext[]>;
  restartContext(caller: Caller, id: string, contextId: string, signal?: AbortSignal): Promise<CodeContext>;
  interruptContext(caller: Caller, id: string, contextId: string): Promise<void>;
  deleteContext(caller: Caller, id: string, contextId: string): Promise<void>;
  runCode(caller: Caller, id: string, call: CodeCall): AsyncIterable<CodePart>;

  createSession(
    caller: Caller,
    id: string,
    request: CreateSessionRequest,
    signal?: AbortSignal,
  ): Promise<SessionRecord>;
  getSession(caller: Caller, sessionId: string): Promise<SessionRecord>;
  /** Those of an unknown sandbox: none. */
  listSessions(caller: Caller, id: string): Promise<readonly SessionRecord[]>;
  destroySession(caller: Caller, sessionId: string): Promise<void>;
  sessionExec(caller: Caller, sessionId: string, call: SessionCall): Promise<ExecAnswer>;
  sessionExecStream(caller: Caller, sessionId: string, call: SessionCall): AsyncIterable<ExecPart>;

  updatePermissions(
    caller: Caller,
    id: string,
    request: { readonly rules: readonly Rule[]; readonly preset: string },
  ): Promise<SandboxRecord>;
  /** Another list for a filtered network, at once. */
  updateNetwork(caller: Caller, id: string, list: NetworkList): Promise<SandboxRecord>;
  /** Another time at which it is destroyed by itself. `extendOnly`: unless that is earlier. */
  updateExpiry(
    caller: Caller,
    id: string,
    request: { readonly expiresInMs: number | undefined; readonly extendOnly: boolean },
  ): Promise<SandboxRecord>;
  explain(caller: Caller, id: string, path: string): Promise<Explanation>;

  changes(caller: Caller, id: string, request: ChangesRequest): Promise<Page<SandboxChange>>;
  diff(caller: Caller, id: string, request: DiffRequest): AsyncIterable<FileDiff>;
  apply(
    caller: Caller,
    id: string,
    request: ApplyRequest,
  ): Promise<{ readonly version: number; readonly outcomes: readonly ApplyOutcome[] }>;
  discard(caller: Caller, id: string, paths: readonly string[]): Promise<readonly SandboxChange[]>;

  readFile(caller: Caller, id: string, path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  writeFile(
    caller: Caller,
    id: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    options: {
      readonly mode: number;
      readonly append: boolean;
      readonly attributes?: NewAttributes | undefined;
      readonly signal?: AbortSignal;
    },
  ): Promise<ViewEntry>;
  listDirectory(
    caller: Caller,
    id: string,
    path: string,
    options: { readonly recursive: boolean; readonly attributes?: boolean },
  ): Promise<readonly ViewEntry[]>;
  stat(caller: Caller, id: string, path: string, options?: { readonly attributes?: boolean }): Promise<ViewEntry>;
  makeDirectory(caller: Caller, id: string, path: string, options: { readonly recursive: boolean }): Promise<ViewEntry>;
  remove(caller: Caller, id: string, path: string, options: { readonly recursive: boolean }): Promise<void>;
  move(caller: Caller, id: string, from: string, to: string): Promise<ViewEntry>;
  /** Resolves when the watch is on; it ends when the sandbox stops or what is watched is gone. */
  watch(
    caller: Caller,
    id: string,
    path: string,
    options: { readonly recursive: boolean; readonly signal?: AbortSignal },
  ): Promise<AsyncIterable<ViewChange>>;
}
