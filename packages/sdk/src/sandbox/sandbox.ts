import type { SandboxClient } from "../client/client.ts";
import { expectSuccess } from "../client/exec.ts";
import {
  CodebaseNotFoundError,
  ProcessError,
  SandboxError,
  SandboxNotFoundError,
  SandboxNotRunningError,
} from "../errors.ts";
import type { Listing } from "../listing.ts";
import type {
  CallOptions,
  Command,
  CommandOptions,
  NetworkList,
  NetworkRule,
  OutputCallbacks,
  RunOptions,
} from "../model/options.ts";
import type {
  ApplyResult,
  AuditEvent,
  Change,
  RunResult,
  SandboxInfo,
  SandboxStatus,
  SnapshotInfo,
} from "../model/records.ts";
import type {
  ApplyOptions,
  ChangesOptions,
  CodeContextOptions,
  CreateSessionOptions,
  DiffOptions,
  ForkOptions,
  GetPortOptions,
  ListSandboxesOptions,
  OpenTerminalOptions,
  PathsOptions,
  RestoreOptions,
  SpawnOptions,
  TerminalSize,
  UpdateExpiryOptions,
  WaitForPortOptions,
} from "../model/requests.ts";
import { RemoteEngine } from "../remote/engine.ts";
import { CodeContext, type CodeExecution, type RunCodeOptions, runCode } from "./code.ts";
import { DiffListing } from "./diff-listing.ts";
import { type EventsOptions, followEvents, pastEvents } from "./events.ts";
import type { Execution } from "./execution/execution.ts";
import { startClosedCommand, startCommand } from "./execution/start-command.ts";
import { SandboxFiles } from "./files.ts";
import {
  type CreateOptions,
  type FromCodebaseOptions,
  listSandboxes,
  openCodebase,
  openExisting,
  openNew,
  openSnapshot,
} from "./opening/from-codebase.ts";
import { type FromLocalOptions, openLocal } from "./opening/from-local.ts";
import { type GetOrCreateOptions, openByKey } from "./opening/get-or-create.ts";
import type { ConnectOptions, OpeningKit, OpenOptions } from "./opening/kit.ts";
import { startIdempotently } from "./opening/open-sandbox.ts";
import type { SandboxParts } from "./parts.ts";
import { SandboxPermissions } from "./permissions.ts";
import { SandboxPort } from "./port.ts";
import { SandboxProcess } from "./process.ts";
import { Session } from "./session.ts";
import { Terminal } from "./terminal.ts";

const RUN_TIMEOUT_MS = 60_000;
const DEFAULT_SIZE: TerminalSize = { columns: 80, rows: 24 };

export type TerminalOptions = Omit<OpenTerminalOptions, keyof TerminalSize> & Partial<TerminalSize>;

export interface DestroyOptions extends CallOptions {
  /** Default: whether this object made it. */
  readonly deleteCodebase?: boolean | undefined;
}

/** A guarded environment for an agent's commands, on a codebase of which it sees what the rules show. */
export class Sandbox implements AsyncDisposable {
  readonly id: string;
  readonly codebaseId: string;
  /** Everything that can be called, for what is not here. */
  readonly client: SandboxClient;
  readonly files: SandboxFiles;
  readonly permissions: SandboxPermissions;
  readonly #parts: SandboxParts;
  readonly #closing = new AbortController();
  #info: SandboxInfo;

  /** For engines; the static functions make one. */
  constructor(parts: SandboxParts) {
    const { client, info } = parts;
    this.#parts = parts;
    this.#info = info;
    this.id = info.id;
    this.codebaseId = info.codebaseId;
    this.client = client;
    this.files = new SandboxFiles(client, info.id);
    this.permissions = new SandboxPermissions({ client, sandboxId: info.id, learn: (news) => this.#learn(news) });
  }

  /** A sandbox on a directory of this machine. Nothing is written there unless `apply` is called. */
  static async fromLocal(directory: string, options: FromLocalOptions = {}): Promise<Sandbox> {
    return await openLocal(REMOTE, directory, options);
  }

  /** A sandbox on a codebase that is there, and stays. */
  static async fromCodebase(codebaseId: string, options: FromCodebaseOptions = {}): Promise<Sandbox> {
    return await openCodebase(REMOTE, codebaseId, options);
  }

  /** A sandbox on a codebase that is there, or else on an empty one of its own. */
  static async create(options: CreateOptions = {}): Promise<Sandbox> {
    return await openNew(REMOTE, options);
  }

  /** A sandbox that begins from a snapshot: what the options do not say is as in the sandbox that the snapshot is of. */
  static async fromSnapshot(snapshotId: string, options: OpenOptions = {}): Promise<Sandbox> {
    return await openSnapshot(REMOTE, snapshotId, options);
  }

  /** A sandbox that is there. Disposing leaves it alone. */
  static async connect(sandboxId: string, options: ConnectOptions & CallOptions = {}): Promise<Sandbox> {
    return await openExisting(REMOTE, sandboxId, options);
  }

  /**
   * The sandbox of this key, started; made if there is none. Disposing leaves it alone. On a server, only the object that made
   * it from a directory has `apply` write there: others know nothing of what was uploaded.
   */
  static async getOrCreate(key: string, options: GetOrCreateOptions = {}): Promise<Sandbox> {
    return await openByKey(REMOTE, key, options);
  }

  /** Those that the caller may see. */
  static list(options: ConnectOptions & ListSandboxesOptions = {}): Listing<SandboxInfo> {
    return listSandboxes(REMOTE, options);
  }

  /** What the server last said of it. */
  get info(): SandboxInfo {
    return this.#info;
  }

  /** As the server last said. */
  get status(): SandboxStatus {
    return this.#info.status;
  }

  /**
   * Another list instead of the one there was, for a sandbox whose network is filtered, at once; gives the rules in force then.
   * Connections that they do not allow are cut.
   */
  async updateNetwork(network: NetworkList, options: CallOptions = {}): Promise<readonly NetworkRule[]> {
    return this.#learn(await this.client.updateNetwork(this.id, network, options)).networkRules;
  }

  /** Has it destroyed by itself after this time, in place of what was said before; gives when that is. */
  async updateExpiry(expiresInMs: number, options: UpdateExpiryOptions = {}): Promise<Date> {
    return this.#learn(await this.client.updateExpiry(this.id, expiresInMs, options)).expiresAt!;
  }

  /** Asks the server. */
  async refresh(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#learn(await this.client.getSandbox(this.id, options));
  }

  /** Runs a command and waits for its end. A non-zero exit code and a timeout are results, unless `check` is given. */
  async run(command: Command, options: RunOptions = {}): Promise<RunResult> {
    const { onStdout, onStderr, check = false } = options;
    const timed = { ...options, timeoutMs: options.timeoutMs ?? RUN_TIMEOUT_MS };
    if (onStdout === undefined && onStderr === undefined) return await this.client.exec(this.id, command, timed);
    const result = await startClosedCommand(this.client, this.id, command, timed).wait();
    if (check) expectSuccess(result);
    return result;
  }

  /**
   * Starts a command and gives a handle on it. Unless `stdin` is given, its input stays open for `sendStdin` until
   * `endStdin`. Rejects when the sandbox takes no commands; that this one cannot be run shows in the handle.
   */
  async exec(command: Command, options: CommandOptions & OutputCallbacks = {}): Promise<Execution> {
    const execution = startCommand(this.client, this.id, command, options);
    try {
      // The call itself says nothing before the command does.
      const { status } = await this.refresh({ signal: options.signal });
      if (status !== "running") await execution.wait();
      return execution;
    } catch (error) {
      await execution.kill();
      throw error;
    }
  }

  /** Starts a process that lives until it ends, its `timeoutMs`, or the sandbox's stop: without this call or this object. */
  async spawn(command: Command, options: SpawnOptions = {}): Promise<SandboxProcess> {
    return new SandboxProcess(this.client, await this.client.startProcess(this.id, command, options));
  }

  /** What runs in it, by number, also commands, sessions and terminals; then spawned processes that ended lately. */
  async processes(options: CallOptions = {}): Promise<SandboxProcess[]> {
    const found = await this.client.listProcesses(this.id, options);
    return found.map((info) => new SandboxProcess(this.client, info));
  }

  /** One of them, by its number or its tag: the newest that has it, one that lives before one that has ended. */
  async process(which: number | string, options: CallOptions = {}): Promise<SandboxProcess> {
    const fitting = (await this.processes(options)).filter(({ number, tag }) => number === which || tag === which);
    const found = fitting.findLast(({ info }) => info.state === "running") ?? fitting.at(-1);
    if (found !== undefined && which !== "") return found;
    throw new ProcessError(`there is no process ${JSON.stringify(which)} in the sandbox`, {
      code: "PROCESS_NOT_FOUND",
    });
  }

  /**
   * Runs code in a context, which keeps its names for the next: the language's own, or `context`. An error of the code is a result. Code that
   * runs out of time (60 s) is interrupted, and the names stay.
   */
  async runCode(code: string, options: RunCodeOptions = {}): Promise<CodeExecution> {
    return await runCode(this.client, this.id, code, options);
  }

  /** An interpreter of its own, until it is removed or the sandbox is stopped. */
  async createCodeContext(options: CodeContextOptions = {}): Promise<CodeContext> {
    return new CodeContext(this.client, await this.client.createCodeContext(this.id, options));
  }

  async codeContexts(options: CallOptions = {}): Promise<CodeContext[]> {
    const found = await this.client.listCodeContexts(this.id, options);
    return found.map((info) => new CodeContext(this.client, info));
  }

  /** A shell that keeps its state from one command to the next. */
  async session(options: CreateSessionOptions = {}): Promise<Session> {
    return new Session(this.client, await this.client.createSession(this.id, options));
  }

  /** A terminal, 80 by 24 unless said otherwise. */
  async terminal(options: TerminalOptions = {}): Promise<Terminal> {
    const { columns = DEFAULT_SIZE.columns, rows = DEFAULT_SIZE.rows } = options;
    return new Terminal(await this.client.openTerminal(this.id, { ...options, columns, rows }));
  }

  /** A port of it: links that work without a key until they expire, and connections. Whether anything listens is not asked. */
  async port(port: number, options: GetPortOptions = {}): Promise<SandboxPort> {
    return new SandboxPort(this.client, await this.client.getPort(this.id, port, options));
  }

  /** Resolves when something in it accepts connections at the port; PortClosedError when nothing has in time (30 s). */
  async waitForPort(port: number, options: WaitForPortOptions = {}): Promise<void> {
    await this.client.waitForPort(this.id, port, options);
  }

  /** What it changed and has not been applied, in path order; with `fold`, for people. */
  changes(options: ChangesOptions = {}): Listing<Change> {
    return this.client.listChanges(this.id, options);
  }

  /** The same as unified diffs; with `patch`, complete enough for `git apply`. */
  diff(options: DiffOptions = {}): DiffListing {
    return new DiffListing(() => this.client.diffChanges(this.id, options));
  }

  /**
   * Writes changes into the codebase, and after `fromLocal` into the directory, as far as the rules allow. In the directory of
   * somebody who went on working, what is not as it was uploaded is left alone and told as a conflict.
   */
  async apply(options: ApplyOptions = {}): Promise<ApplyResult> {
    const { localDirectory } = this.#parts;
    const result = await this.client.applyChanges(this.id, options);
    if (localDirectory === undefined) return result;
    return await (options.dryRun === true
      ? localDirectory.rehearse(result, options)
      : localDirectory.follow(result, options));
  }

  /** Undoes changes, and tells which. */
  async discard(options: PathsOptions = {}): Promise<Change[]> {
    return await this.client.discardChanges(this.id, options);
  }

  /**
   * Keeps what it has now, changes and home, to go back to or begin from; nothing that runs notices. It stays when the sandbox is
   * destroyed. Not for a sandbox that syncs after each command.
   */
  async snapshot(label = "", options: CallOptions = {}): Promise<SnapshotInfo> {
    return await this.client.snapshotSandbox(this.id, { ...options, label });
  }

  /** The oldest first. */
  async snapshots(options: CallOptions = {}): Promise<SnapshotInfo[]> {
    return await this.client.listSnapshots({ ...options, sandboxId: this.id });
  }

  /** Goes back to a snapshot. What it had since is gone, and so is what ran; it runs again if it did. */
  async restore(snapshotId: string, options: RestoreOptions = {}): Promise<void> {
    this.#learn(await this.client.restoreSandbox(this.id, snapshotId, options));
  }

  /** Sandboxes that were made of it stay as they are. */
  async deleteSnapshot(snapshotId: string, options: CallOptions = {}): Promise<void> {
    await this.client.deleteSnapshot(snapshotId, options);
  }

  /**
   * Sandboxes of what this one has now, or had at a snapshot, started; each goes its own way from there. What the options do not
   * say is as in this one. They use its connection, and disposing of one destroys it.
   */
  async fork(options: ForkOptions = {}): Promise<this[]> {
    const made = await this.client.forkSandbox(this.id, options);
    const { signal } = options;
    const started = await Promise.allSettled(made.map(({ id }) => this.client.startSandbox(id, { signal })));
    const failed = started.find((one) => one.status === "rejected");
    if (failed !== undefined) {
      await Promise.allSettled(made.map(({ id }) => this.client.destroySandbox(id)));
      throw failed.reason;
    }
    const Same = this.constructor as new (parts: SandboxParts) => this;
    const parts = { client: this.client, owner: "this", ownsCodebase: false, release: async () => {} } as const;
    return started.flatMap((one) => (one.status === "fulfilled" ? [new Same({ ...parts, info: one.value })] : []));
  }

  /** Writes all changes into the codebase, and nowhere else. */
  async sync(options: CallOptions = {}): Promise<ApplyResult> {
    return await this.client.applyChanges(this.id, options);
  }

  /** What happened so far, then what happens, until the sandbox is destroyed, this object is closed, or the signal. */
  async *events(options: EventsOptions = {}): AsyncGenerator<AuditEvent, void, undefined> {
    const { signal } = this.#closing;
    const until = options.signal === undefined ? signal : AbortSignal.any([options.signal, signal]);
    try {
      const read = options.follow === false ? pastEvents : followEvents;
      yield* read(this.client, this.id, { ...options, signal: until });
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!signal.aborted) throw error;
    }
  }

  /** Starts it, unless it runs. */
  async start(options: CallOptions = {}): Promise<void> {
    this.#learn(await startIdempotently(this.client, this, options));
  }

  /** Ends everything that runs in it, if it runs; what it changed stays. */
  async stop(options: CallOptions = {}): Promise<void> {
    try {
      this.#learn(await this.client.stopSandbox(this.id, options));
    } catch (error) {
      if (!(error instanceof SandboxNotRunningError)) throw error;
      await this.refresh(options);
    }
  }

  /**
   * Holds all that runs in it still, as it is, until `resume`. Files, changes and rules answer meanwhile; a command is an error.
   * The time limits of commands that run count on.
   */
  async pause(options: CallOptions = {}): Promise<void> {
    this.#learn(await this.client.pauseSandbox(this.id, options));
  }

  /** Lets it go on, if it is paused. */
  async resume(options: CallOptions = {}): Promise<void> {
    this.#learn(await this.client.resumeSandbox(this.id, options));
  }

  /** Removes it with all that runs in it, with changes that were not applied, and with a codebase made for it. */
  async destroy(options: DestroyOptions = {}): Promise<void> {
    const { ownsCodebase } = this.#parts;
    const { deleteCodebase = ownsCodebase, signal } = options;
    await this.client.destroySandbox(this.id, { signal }).catch(ignoreGone);
    this.#learn({ ...this.#info, status: "stopped" });
    if (deleteCodebase) await this.#deleteCodebase(options);
  }

  /** Lets go of the connection, and leaves the sandbox as it is. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#parts.release();
  }

  /** Destroys it if this object made it, and lets go of the connection; nothing after `close`. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return;
    try {
      if (this.#parts.owner === "this") await this.destroy();
    } finally {
      await this.close();
    }
  }

  async #deleteCodebase({ deleteCodebase, signal }: DestroyOptions): Promise<void> {
    try {
      await this.client.deleteCodebase(this.codebaseId, { signal });
    } catch (error) {
      if (error instanceof CodebaseNotFoundError) return;
      // Made for this sandbox, but others found it useful: unless it was asked for, it is theirs now.
      const isShared = error instanceof SandboxError && error.code === "CODEBASE_IN_USE";
      if (!isShared || deleteCodebase === true) throw error;
    }
  }

  #learn(info: SandboxInfo): SandboxInfo {
    this.#info = info;
    return info;
  }
}

/** Without an engine or a client, there is a server somewhere. */
const REMOTE: OpeningKit<Sandbox> = {
  make: (parts) => new Sandbox(parts),
  engineFor: (options) => RemoteEngine.connect(options, process.env),
};

function ignoreGone(error: unknown): void {
  if (!(error instanceof SandboxNotFoundError)) throw error;
}
