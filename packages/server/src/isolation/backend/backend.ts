import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import type { Owner } from "../filesystem/presentation.ts";
import { IsolationError } from "./isolation-error.ts";

export type BackendName = "bwrap" | "docker" | "mock";

/**
 * `none`: not even the host's loopback. `filtered`: the same, and the server answers in it for the hosts of a list. `private`: the
 * internet through a network of its own. `host`: the host's network.
 */
export type NetworkMode = "none" | "filtered" | "private" | "host";

/**
 * A way to keep processes apart from the host. Every backend is a folder with the same files: `backend.ts` (makes boxes,
 * removes what dead servers left), `plan.ts` (what the box will look like, as data), `box.ts` (one box) and `process.ts`
 * (one process tree in it). Whatever waits takes a signal. Disposing of it destroys every box that is still there.
 */
export interface Backend extends AsyncDisposable {
  readonly name: BackendName;
  /** Limits this host cannot enforce, each as a sentence for the operator; empty when all hold. */
  readonly degradations: readonly string[];
  /** Prepares a box. Nothing runs in it, and its mounts need not exist, before `start`. */
  createBox(spec: BoxSpec, options?: CreateOptions): Promise<Box>;
  /** Ends and removes what the named instances (servers that are gone) left: processes, control groups, containers. */
  removeOrphans(deadInstances: readonly string[]): Promise<void>;
}

export interface Cancellable {
  readonly signal?: AbortSignal | undefined;
}

export interface CreateOptions extends Cancellable {
  /** Lines for people who wait: an image that is pulled. */
  readonly onProgress?: ((line: string) => void) | undefined;
}

/** Where a box has the home of its user, which is one of its mounts. */
export const HOME = "/home/agent";
/** Who commits in a box where nobody says who: git takes no name for an author without it. */
export const EMAIL = "agent@sandbox";

/** What makes programs in a box believe the sandbox's authority, beside all whom this host believes. Nothing of it is secret. */
export interface TrustFiles {
  /** The authority's certificate alone, for programs that add to what they have. */
  readonly authority: Uint8Array;
  /** The host's certificates and this one. */
  readonly bundle: Uint8Array;
  /** The same for Java. */
  readonly java: Uint8Array;
}

/** A line of /etc/passwd. */
export interface Account {
  readonly name: string;
  readonly home: string;
}

export interface BoxSpec {
  /** Unique on this host; letters, digits, `_` and `-` only. */
  readonly id: string;
  /** File-system mounts of the host and where the box shows them; the first is the workspace. */
  readonly mounts: readonly { readonly source: string; readonly target: string }[];
  readonly limits: ResourceLimits;
  readonly network: NetworkMode;
  /** Who answers in the network `filtered`. Called for each life of the box, before anything runs in it; what comes back ends with it. */
  readonly answerIn?: ((listen: Listen, socketOwner?: SocketOwner) => Promise<NetworkAnswer>) | undefined;
  /** bwrap: what its user is called, and where that is at home; default: agent. */
  readonly account?: Account | undefined;
  /** Variables every process of the box gets, over the box's own PATH, HOME, LANG, TERM and USER. */
  readonly env: Readonly<Record<string, string>>;
  readonly hostname: string;
  /** Certificates that programs of the box believe, in place of those of its system; variables for them yield to `env`. */
  readonly trust?: TrustFiles | undefined;
  /** Sizes of the private /tmp and /dev/shm. */
  readonly tmpBytes: number;
  /** bwrap: directories or files of the host shown read-only at the same path. */
  readonly readOnlyPaths: readonly string[];
  /** bwrap: a root directory to use instead of the host's /usr and friends. */
  readonly rootDirectory?: string | undefined;
  readonly image?: string | undefined;
  /** docker: the name of an OCI runtime the engine knows (`runsc`, `kata`). */
  readonly ociRuntime?: string | undefined;
}

export interface StartOptions extends Cancellable {
  /** Until this resolves the mounts may not be there; when it rejects, the box is not to be. Default: they are there. */
  readonly mounted?: Promise<unknown> | undefined;
}

/** The server's side of a box's network. */
export interface NetworkAnswer {
  /** Resolves when it holds nothing of the box any more. Idempotent. */
  close(): Promise<void>;
}

export interface Box {
  /** Who the box's processes are to the host's kernel: the workspace is mounted for this user. */
  readonly owner: Owner;
  /** Makes the box ready to run commands, once. */
  start(options?: StartOptions): Promise<void>;
  /** Runs one command. Resolves once it has started, rejects with an `IsolationError` when the box cannot run it. */
  run(command: BoxCommand, options?: Cancellable): Promise<BoxProcess>;
  /** Starts a shell that reads commands from a channel of its own (see `session/`). */
  openShell(command: ShellCommand, options?: Cancellable): Promise<ShellProcess>;
  /** Runs one command on a terminal of its own. */
  openTerminal(command: TerminalCommand, options?: Cancellable): Promise<TerminalProcess>;
  /** Connects to a port that something in the box listens at, on its loopback device. PORT_CLOSED: nothing does. */
  connect(port: number, options?: Cancellable): Promise<Socket>;
  /** The shells this box has, by absolute path; the first is the one commands are given to. */
  shells(): Promise<readonly string[]>;
  usage(): Promise<ResourceUsage>;
  /**
   * Holds every process still, as it is, until `resume`; resolves when none runs. Commands that are being started have started
   * by then, and a command that is killed meanwhile ends. Idempotent, as is `resume`; a paused box can be destroyed.
   */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** From the call of `pause` to that of `resume`. */
  readonly isPaused: boolean;
  /** When it resolves no process of the box is left, nor any other trace. Idempotent, also while something runs or starts. */
  destroy(): Promise<void>;
}

export interface BoxCommand {
  /** The program by absolute path inside the box, and its arguments. */
  readonly argv: readonly [string, ...string[]];
  /** Over the variables of the box. */
  readonly env: Readonly<Record<string, string>>;
  /** A directory inside the box. */
  readonly workdir: string;
  /** Without stdin the command reads an end of file. */
  readonly stdin: boolean;
}

/** One command and everything it starts. */
export interface BoxProcess {
  /** Present when the command asked for it. Ending it is the command's end of file. */
  readonly stdin?: Writable | undefined;
  /** Both must be read (or destroyed): whoever does not read stops the command at a full pipe. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the command has ended; both outputs then end by themselves. Rejects when the box broke under it. */
  readonly exit: Promise<ProcessExit>;
  /** Signals the command with all its descendants, as they are now. One that has ended does not get it. */
  signal(signalNumber: number): Promise<void>;
  /** Kills the command with all its descendants, however they hid; `exit` then resolves. Idempotent. */
  kill(): void;
}

export interface ProcessExit {
  /** 128 + n for a command that died of signal n. */
  readonly exitCode: number;
  /** The memory limit killed something while the command ran. */
  readonly outOfMemory: boolean;
}

/** The session module writes the shell's start-up text to `commands` first. */
export type ShellCommand = Omit<BoxCommand, "stdin">;

/**
 * A shell with channels of its own: descriptor 0 is `commands`, descriptor 3 is `status`; stdout and stderr are pipes for
 * the whole life of the shell. The start-up text moves 0 and 3 out of the way of what the shell runs.
 */
export interface ShellProcess {
  readonly commands: Writable;
  readonly status: Readable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exit: Promise<ProcessExit>;
  /** Bytes that were written to stdout and stderr and did not arrive here yet: what a finished command may still owe. */
  pendingOutput(): Promise<{ readonly stdout: number; readonly stderr: number }>;
  /**
   * Signals what the shell runs in the foreground since `sinceMs` (a time of performance.now()), with all descendants: its
   * children that started since, not the shell, not background jobs of earlier commands. Tells how many got it.
   */
  signalForeground(signal: InterruptSignal, sinceMs: number): Promise<number>;
  /** How often the memory limit has killed in the box so far; absent without a limit, or where it cannot be told. */
  readonly oomKills?: (() => Promise<number>) | undefined;
  /** Who has the shell's channels, seen from outside the shell while it waits for a command. */
  channels(): Promise<ChannelState>;
  /** Signals the shell alone. */
  signalShell(signalNumber: number): Promise<void>;
  /** Kills the shell and everything it ever started. */
  kill(): void;
}

/**
 * What a session knows of its shell's channels, `commands` and `status`, without believing the shell. Subshells of it inherit both
 * and do not use them; whoever does is a stranger.
 */
export interface ChannelState {
  /** How many processes other than the shell have one of the channels in their hands. */
  readonly strangers: number;
  /** How much the shell itself has read in its life, from wherever; undefined where the kernel does not count. */
  readonly bytesRead: number | undefined;
  /** What was written to `commands` and nobody has read, as far as that can be seen. */
  readonly bytesUnread: number;
}

export type InterruptSignal = "SIGINT" | "SIGTERM" | "SIGKILL";

export interface TerminalCommand extends ShellCommand {
  readonly size: TerminalSize;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface TerminalProcess {
  /** Raw bytes both ways. */
  readonly input: Writable;
  readonly output: Readable;
  readonly exit: Promise<ProcessExit>;
  resize(size: TerminalSize): Promise<void>;
  /** As of a BoxProcess. */
  signal(signalNumber: number): Promise<void>;
  kill(): void;
}

/** A box in the host's own network has no ports of its own: whoever may use the sandbox would reach all that the host runs. */
export function refuseHostNetwork(network: NetworkMode): void {
  if (network !== "host") return;
  throw new IsolationError("RUNTIME_UNAVAILABLE", "the sandbox is in the host's network and has no ports of its own", {
    hint: "use the network none or private; what listens in this sandbox listens at the host itself",
  });
}

/** What a sandbox may use. Absent means: not limited by us. */
export interface ResourceLimits {
  readonly memoryBytes?: number;
  /** Microseconds of CPU time in each 100 ms: 50,000 is half a CPU, 200,000 are two. */
  readonly cpuQuota?: number;
  /** Weight against other sandboxes when the CPUs are busy; 1024 is the usual one (range 2 … 262,144). */
  readonly cpuShares?: number;
  /** Processes and threads together. */
  readonly pids?: number;
}

/** What a sandbox uses now, as far as the host can tell. */
export interface ResourceUsage {
  readonly memoryBytes?: number | undefined;
  readonly pids?: number | undefined;
  readonly cpuMicros?: number | undefined;
}

/** A place in the network of a box where the server listens. */
export interface ListeningPlace {
  readonly protocol: "tcp" | "udp";
  readonly address: string;
  readonly port: number;
}

/**
 * Makes sockets that listen in the network of one box, from outside: all of these, in their order, or none. The descriptors are the
 * caller's. Before the first of them the loopback device there has got the address that those of names are taken from.
 */
export type Listen = (places: readonly ListeningPlace[]) => Promise<readonly number[]>;

/** The name of the program in a box that has the socket with this local port, if it can be found quickly. A program calls itself what it likes. */
export type SocketOwner = (protocol: "tcp" | "udp", port: number) => string | undefined;
