import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import type { Rule } from "@agentfense/permission";
import type { BackendName, NetworkMode, ResourceLimits, ResourceUsage, TerminalSize } from "../backend/backend.ts";
import type { DiscardReport } from "../changes/discard.ts";
import type { CodeContexts } from "../code/api.ts";
import type { Cancellable, ExecEvent, ExecOutcome, ExecRequest, ExecResult, LimitEvent } from "../exec/api.ts";
import type { Frozen } from "../filesystem/freezing.ts";
import type { QuotaUse } from "../filesystem/quota.ts";
import type { SettledEntry } from "../filesystem/settlement.ts";
import type { WorkspaceEvent } from "../mount/host.ts";
import type { NetworkRule } from "../network/policy.ts";
import type { SecretWithValue } from "../network/secrets.ts";
import type { BoxSession, SessionRequest } from "../session/api.ts";
import type { MountedFiles } from "../view/files.ts";
import type { Processes } from "./processes.ts";

/** What a sandbox is made of. */
export interface SandboxSpec {
  /** Letters, digits, `_` and `-`; made up when absent. */
  readonly id?: string;
  readonly runtime: BackendName;
  /** The guarded file systems; the first one is usually at /workspace. */
  readonly workspaces: readonly WorkspaceSpecification[];
  /**
   * A directory of the host for the home of the box's user, made if absent; it belongs to the caller and stays. Default: one in
   * the delta of the first workspace. A sandbox with neither has no home.
   */
  readonly home?: string;
  /** Where the box shows the first workspace too: the HOME of its processes, and where they run. */
  readonly workspaceHome?: string;
  readonly limits?: SandboxLimits;
  /** What the layers beneath take of the limits on the disk. */
  readonly usedBeneath?: QuotaUse | undefined;
  /** Default `none`. */
  readonly network?: NetworkMode;
  /** What a sandbox with the network `filtered` may reach; default: nothing. */
  readonly networkRules?: readonly NetworkRule[];
  /** What the network `filtered` puts into requests on their way out. In the sandbox variables of their names hold placeholders. */
  readonly secrets?: readonly SecretWithValue[] | undefined;
  readonly env?: Readonly<Record<string, string>>;
  readonly hostname?: string;
  /** Default 1 GiB; tmpfs, charged to the sandbox's memory. */
  readonly tmpBytes?: number;
  readonly readOnlyPaths?: readonly string[];
  readonly rootDirectory?: string;
  readonly image?: string;
  readonly ociRuntime?: string;
  readonly onEvent?: (event: SandboxEvent) => void;
  /** Numbers its processes; default: from 1 on. */
  readonly nextProcessNumber?: () => number;
}

export interface WorkspaceSpecification {
  /** Where the box shows it; default /workspace. */
  readonly target?: string;
  /** Codebase directories of the host, top first; usually one. */
  readonly lowers: readonly string[];
  /** What its delta lies on: directories of deltas that snapshots froze, top first, see filesystem/freezing.ts. */
  readonly beneath?: readonly string[];
  /** Where writes go on the host; made if absent. Without one the workspace is read-only. */
  readonly delta?: string;
  readonly rules: readonly Rule[];
  readonly revocable?: boolean;
  /** Events tell of what is looked at, read and written, too: each path once for each level. */
  readonly recordsAccess?: boolean;
}

/** A delta on its way to becoming a layer. */
export interface FreezeRequest {
  /** The directory that it becomes, which does not exist yet, beside those that it lies on. */
  readonly layer: string;
}

export interface SandboxLimits extends ResourceLimits {
  /** The most that all workspaces and the home hold together. */
  readonly diskBytes?: number;
  readonly diskFiles?: number;
  /** Kept of each stream of a command; default 10 MiB. */
  readonly outputBytes?: number;
}

export type SandboxEvent = WorkspaceEvent | LimitEvent | ConnectionEvent;

/** What happened in a filtered network. A connection that was allowed, and the use of a secret, is told once for each host and port. */
export interface ConnectionEvent {
  readonly kind: "connection_allowed" | "connection_denied" | "secret_used" | "secret_misplaced";
  /** "": several, which are counted. */
  readonly host: string;
  /** 0: only the name was asked for. */
  readonly port: number;
  readonly program?: string;
  /** The name of the secret that was sent. */
  readonly secret?: string;
  /** Why not, and what to do about it: made for a model. */
  readonly sentence?: string;
  /** How many alike it stands for. */
  readonly count: number;
}

/**
 * One life of a sandbox, from its start to its end; what has ended is made anew, of the same deltas. The states of what a user
 * calls a sandbox, which stops and starts, are kept by whoever makes it. Every method that waits takes a signal; a command
 * whose signal aborts is killed with everything it started.
 */
export interface BoxedWorkspace extends AsyncDisposable {
  readonly id: string;
  readonly runtime: BackendName;
  readonly isPaused: boolean;
  /** Mounts the workspaces and makes the box ready, or ends. A second start waits for the first. */
  start(options?: Cancellable): Promise<void>;
  exec(request: ExecRequest, options?: Cancellable): Promise<ExecResult>;
  /** Ends with one `exit` event. Leaving the loop early kills the command. */
  execStream(request: ExecRequest, options?: Cancellable): AsyncIterable<ExecEvent>;
  session(request?: SessionRequest, options?: Cancellable): Promise<BoxSession>;
  terminal(request: TerminalRequest, options?: Cancellable): Promise<Terminal>;
  /** To a port on the loopback device of the sandbox. PORT_CLOSED when nothing accepts there; it is cut when the sandbox ends. */
  connect(port: number, options?: Cancellable): Promise<Socket>;
  readonly processes: Processes;
  readonly contexts: CodeContexts;
  /** New rules for the first workspace, at once, kernel caches included. */
  updateRules(rules: readonly Rule[]): Promise<void>;
  /** Another list for its network, which is `filtered`, at once: connections that it does not allow are cut. */
  updateNetwork(rules: readonly NetworkRule[]): Promise<void>;
  /**
   * Sends another value in the place of a secret's from now on, or none. False: the old one is not sent any more, and the new one, which is
   * not as long or for other hosts, by the next life of the sandbox.
   */
  renewSecret(name: string, secret: SecretWithValue | undefined): Promise<boolean>;
  usage(): Promise<ResourceUsage>;
  /** Files as a process inside sees them: every rule applies. */
  readonly files: MountedFiles;
  /**
   * Another hand changed these paths of a workspace's codebase ("/src/a.ts"); resolves when nothing old is shown.
   * Gives those that the sandbox shows its own version of, as far as it runs.
   */
  codebaseChanged(paths: readonly string[]): Promise<readonly string[]>;
  /** Others change the codebase without telling: resolves when what it is now shows. Costs a stat for all that was looked at. */
  lookAgain(): Promise<void>;
  /**
   * These delta entries are in the codebase now: lets go of each that is still what it was, so that the codebase shows
   * through. What changed meanwhile, or is open for writing, stays. Gives the paths that stayed. Works after its end, too.
   */
  settle(entries: readonly SettledEntry[]): Promise<readonly string[]>;
  /**
   * Throws changes of the delta away (all, or these paths with what is below them), also while it runs. What is open for
   * writing stays and is reported.
   */
  discard(paths: readonly string[] | undefined): Promise<DiscardReport>;
  /**
   * Freezes the delta of the first workspace, and the home in it, as they are at one moment, and lays an empty one on top. No process
   * notices but by the time that large files take to copy which are open for writing past the engine.
   */
  freeze(request: FreezeRequest): Promise<Extract<Frozen, { outcome: "frozen" }>>;
  /**
   * Holds every process still until `resume`; needs a running sandbox, and may be repeated. Files, changes and rules answer as
   * before; what needs a process is SANDBOX_PAUSED. The time limits of commands count on.
   */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends every process, then unmounts, and leaves no trace but the deltas, which belong to the caller. Idempotent. */
  destroy(): Promise<void>;
}

export interface TerminalRequest {
  /** Looked up on the PATH. Default: the sandbox's first shell, interactive. */
  readonly argv?: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
  readonly workdir?: string;
  readonly size: TerminalSize;
}

export interface Terminal extends AsyncDisposable {
  readonly input: Writable;
  readonly output: Readable;
  readonly exit: Promise<ExecOutcome>;
  resize(size: TerminalSize): Promise<void>;
  kill(): void;
}

export interface SpawnRequest extends Omit<ExecRequest, "stdin"> {
  readonly tag?: string;
  /** Whether it has an input. Otherwise it reads an end of file. */
  readonly stdin?: boolean;
  /** Runs it on a terminal of this size, which always has an input. */
  readonly terminal?: TerminalSize;
  /** Default: none. */
  readonly timeoutMs?: number;
}

export type ProcessKind = "started" | "command" | "session" | "terminal" | "context";

export interface AttachOptions extends Cancellable {
  /** Gives nothing that was printed before. */
  readonly skipKept?: boolean | undefined;
}

/** One that was not spawned is in somebody else's hands: it can be waited for and signalled; the rest is PROCESS_UNSUITABLE. */
export interface SandboxProcess {
  readonly number: number;
  readonly kind: ProcessKind;
  readonly command: string | readonly string[];
  /** "": none. */
  readonly tag: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  /** Undefined while it runs. */
  readonly outcome: ExecOutcome | undefined;
  readonly ended: Promise<ExecOutcome>;
  /** What is kept of its output, then what comes, then its end. A reader that is slow slows the process down. */
  attach(options?: AttachOptions): AsyncIterable<ProcessEvent>;
  /** Resolves when the process has room for it. */
  write(data: Uint8Array, options?: Cancellable): Promise<void>;
  closeInput(): Promise<void>;
  /** To the process and all that it started. SIGKILL leaves nothing of it. */
  signal(signal: number): Promise<void>;
  resize(size: TerminalSize): Promise<void>;
}

export type ProcessEvent =
  | { readonly kind: "attached" }
  /** `lostBytes` of this stream came before the data and were not kept. */
  | { readonly kind: "stdout" | "stderr" | "terminal"; readonly data: Buffer; readonly lostBytes: number }
  | { readonly kind: "exit"; readonly outcome: ExecOutcome };
