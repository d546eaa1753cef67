import type { Rule } from "@agentfense/permission";
import type { Engine } from "../engine.ts";
import type { Listing } from "../listing.ts";
import type {
  CallOptions,
  Command,
  CommandOptions,
  ConnectionOptions,
  NetworkList,
  PageOptions,
  RuleOptions,
  SandboxOptions,
  UploadDirectoryOptions,
} from "../model/options.ts";
import type {
  ApiKey,
  ApplyResult,
  AuditEvent,
  BatchResult,
  Change,
  Codebase,
  CodeContextInfo,
  CodeEvent,
  CommandEvent,
  DirectoryUploadResult,
  FileChange,
  FileDiff,
  FileInfo,
  HomeInfo,
  PathExplanation,
  PortInfo,
  ProcessEvent,
  ProcessInfo,
  RunResult,
  SandboxInfo,
  SecretInfo,
  ServerInfo,
  SessionInfo,
  SnapshotInfo,
  UploadResult,
  Version,
} from "../model/records.ts";
import type {
  ApplyOptions,
  AttachOptions,
  BatchEntry,
  BatchOptions,
  ChangesOptions,
  CodeContextOptions,
  CodeOptions,
  Content,
  CreateCodebaseRequest,
  CreatedKey,
  CreateKeyRequest,
  CreateSandboxRequest,
  CreateSessionOptions,
  DiffOptions,
  DownloadArchiveOptions,
  ExecOptions,
  ForkOptions,
  GetPortOptions,
  InteractiveOptions,
  ListCodebasesOptions,
  ListEventsOptions,
  ListFilesOptions,
  ListSandboxesOptions,
  ListSnapshotsOptions,
  ManifestEntry,
  OpenTerminalOptions,
  OwnerOptions,
  PathsOptions,
  PortConnection,
  PutSecretOptions,
  RecursiveOptions,
  RestoreOptions,
  SessionExecOptions,
  SessionStreamOptions,
  SnapshotOptions,
  SpawnOptions,
  TerminalConnection,
  TerminalSize,
  UpdateExpiryOptions,
  UploadArchiveOptions,
  UploadFileOptions,
  VersionOptions,
  WaitForPortOptions,
  WatchEventsOptions,
  WithAttributes,
  WriteFileOptions,
} from "../model/requests.ts";
import { RemoteEngine } from "../remote/engine.ts";
import { uploadDirectory } from "../upload/upload.ts";
import { CodeCalls } from "./code.ts";
import { CodebaseCalls } from "./codebases.ts";
import { EventCalls } from "./events.ts";
import { ExecCalls } from "./exec.ts";
import { FileCalls } from "./files.ts";
import { connectPort, getPort, waitForPort } from "./ports.ts";
import { ProcessCalls } from "./processes.ts";
import { Rpc } from "./rpc.ts";
import { ChangeCalls, SandboxCalls, SessionCalls } from "./sandboxes.ts";
import { SystemCalls } from "./system.ts";
import { openTerminal } from "./terminal.ts";

/** Every call of the contract, one method each. Nothing is sent before the first one. */
export class SandboxClient implements AsyncDisposable {
  readonly #engine: Engine;
  /** An engine that was handed in belongs to whoever made it. */
  readonly #ownsEngine: boolean;
  readonly #rpc: Rpc;
  readonly #codebases: CodebaseCalls;
  readonly #sandboxes: SandboxCalls;
  readonly #exec: ExecCalls;
  readonly #sessions: SessionCalls;
  readonly #processes: ProcessCalls;
  readonly #code: CodeCalls;
  readonly #files: FileCalls;
  readonly #changes: ChangeCalls;
  readonly #events: EventCalls;
  readonly #system: SystemCalls;

  constructor(options: ConnectionOptions & { readonly engine?: Engine | undefined } = {}) {
    this.#engine = options.engine ?? RemoteEngine.connect(options, process.env);
    this.#ownsEngine = options.engine === undefined;
    this.#rpc = new Rpc(this.#engine, options);
    this.#codebases = new CodebaseCalls(this.#rpc);
    this.#sandboxes = new SandboxCalls(this.#rpc);
    this.#exec = new ExecCalls(this.#rpc);
    this.#sessions = new SessionCalls(this.#rpc);
    this.#processes = new ProcessCalls(this.#rpc);
    this.#code = new CodeCalls(this.#rpc);
    this.#files = new FileCalls(this.#rpc);
    this.#changes = new ChangeCalls(this.#rpc);
    this.#events = new EventCalls(this.#rpc);
    this.#system = new SystemCalls(this.#rpc);
  }

  /** Where its calls go. */
  get engine(): Engine {
    return this.#engine;
  }

  /** The name of the engine: the server's address, "embedded", "mock". */
  get name(): string {
    return this.#engine.name;
  }

  /** Lets go of the connection; what still runs over it fails. An engine that was handed in stays as it is. */
  async close(): Promise<void> {
    this.#rpc.close();
    if (this.#ownsEngine) await this.#engine[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // Codebases.

  /** Makes a codebase, empty at first. */
  createCodebase(request: CreateCodebaseRequest, options?: CallOptions): Promise<Codebase> {
    return this.#codebases.create(request, options);
  }

  /** One codebase. */
  getCodebase(codebaseId: string, options?: CallOptions): Promise<Codebase> {
    return this.#codebases.get(codebaseId, options);
  }

  /** Those that the caller may see. */
  listCodebases(options?: ListCodebasesOptions): Listing<Codebase> {
    return this.#codebases.list(options);
  }

  /** Fails while sandboxes use it, unless forced; those sandboxes are then destroyed. */
  deleteCodebase(codebaseId: string, options?: CallOptions & { readonly force?: boolean }): Promise<void> {
    return this.#codebases.delete(codebaseId, options);
  }

  /** Writes one file, as a version of its own. */
  uploadFile(codebaseId: string, path: string, content: Content, options?: UploadFileOptions): Promise<UploadResult> {
    return this.#codebases.uploadFile(codebaseId, path, content, options);
  }

  /** Makes a symbolic link. It may point anywhere: it means something inside a sandbox only. */
  uploadSymlink(codebaseId: string, path: string, target: string, options?: CallOptions): Promise<UploadResult> {
    return this.#codebases.uploadSymlink(codebaseId, path, target, options);
  }

  /** A local directory as one version, all or nothing; only content that the server lacks is sent. */
  uploadDirectory(
    codebaseId: string,
    directory: string,
    options?: UploadDirectoryOptions,
  ): Promise<DirectoryUploadResult> {
    return uploadDirectory(this, codebaseId, directory, options);
  }

  /** The paths of those entries whose content the server needs to be sent. */
  compareManifest(codebaseId: string, entries: Iterable<ManifestEntry>, options?: CallOptions): Promise<string[]> {
    return this.#codebases.compareManifest(codebaseId, entries, options);
  }

  /** Many files as one version, all or nothing. */
  batchUpload(
    codebaseId: string,
    entries: AsyncIterable<BatchEntry> | Iterable<BatchEntry>,
    options?: BatchOptions,
  ): Promise<BatchResult> {
    return this.#codebases.batchUpload(codebaseId, entries, options);
  }

  /** A tar archive as one version, all or nothing. */
  uploadArchive(codebaseId: string, tar: Content, options?: UploadArchiveOptions): Promise<BatchResult> {
    return this.#codebases.uploadArchive(codebaseId, tar, options);
  }

  /** A file, all at once. */
  downloadFile(codebaseId: string, path: string, options?: VersionOptions): Promise<Uint8Array> {
    return this.#codebases.downloadFile(codebaseId, path, options);
  }

  /** A file in pieces. Nothing is asked for before the first read, which is where errors show. */
  downloadStream(codebaseId: string, path: string, options?: VersionOptions): ReadableStream<Uint8Array> {
    return this.#codebases.downloadStream(codebaseId, path, options);
  }

  /** A directory and all below it as a tar archive, in pieces. */
  downloadArchive(codebaseId: string, options?: DownloadArchiveOptions): ReadableStream<Uint8Array> {
    return this.#codebases.downloadArchive(codebaseId, options);
  }

  /** The files of a directory of a codebase. */
  listFiles(codebaseId: string, options?: ListFilesOptions): Listing<FileInfo> {
    return this.#codebases.listFiles(codebaseId, options);
  }

  /** Removes a file, or a directory with all below it when recursive. */
  deleteFile(codebaseId: string, path: string, options?: RecursiveOptions): Promise<BatchResult> {
    return this.#codebases.deleteFile(codebaseId, path, options);
  }

  /** Moves a file or a directory. */
  renameFile(codebaseId: string, from: string, to: string, options?: CallOptions): Promise<BatchResult> {
    return this.#codebases.renameFile(codebaseId, from, to, options);
  }

  /** Newest first, without their changes. */
  listVersions(codebaseId: string, options?: PageOptions): Listing<Version> {
    return this.#codebases.listVersions(codebaseId, options);
  }

  /** A version with its changes. */
  getVersion(codebaseId: string, version: number, options?: CallOptions): Promise<Version> {
    return this.#codebases.getVersion(codebaseId, version, options);
  }

  /** Makes a new version with the content of an old one. */
  rollback(codebaseId: string, version: number, options?: CallOptions): Promise<Version> {
    return this.#codebases.rollback(codebaseId, version, options);
  }

  // Sandboxes.

  /** Makes a sandbox, which is not started. Presets are those of this process. */
  createSandbox(request: CreateSandboxRequest, options?: CallOptions): Promise<SandboxInfo> {
    return this.#sandboxes.create(request, options);
  }

  /** One sandbox. */
  getSandbox(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return this.#sandboxes.get(sandboxId, options);
  }

  /** Those that the caller may see. */
  listSandboxes(options?: ListSandboxesOptions): Listing<SandboxInfo> {
    return this.#sandboxes.list(options);
  }

  /** Starts it. */
  startSandbox(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return this.#sandboxes.start(sandboxId, options);
  }

  /** Ends everything that runs in it; what it changed stays. */
  stopSandbox(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return this.#sandboxes.stop(sandboxId, options);
  }

  /** Holds all that runs in it still, until it is resumed; its files and changes can be looked at meanwhile. */
  pauseSandbox(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return this.#sandboxes.pause(sandboxId, options);
  }

  /** Lets a paused one go on. */
  resumeSandbox(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return this.#sandboxes.resume(sandboxId, options);
  }

  /** Removes it with everything that runs in it and with changes that were not applied. */
  destroySandbox(sandboxId: string, options?: CallOptions): Promise<void> {
    return this.#sandboxes.destroy(sandboxId, options);
  }

  /** A sandbox that begins from a snapshot: what the options do not say is as in the sandbox that the snapshot is of. */
  createFromSnapshot(snapshotId: string, options?: SandboxOptions): Promise<SandboxInfo> {
    return this.#sandboxes.createFromSnapshot(snapshotId, options);
  }

  /** Keeps what the sandbox has now, its own home included; nothing in it notices. */
  snapshotSandbox(sandboxId: string, options?: SnapshotOptions): Promise<SnapshotInfo> {
    return this.#sandboxes.snapshot(sandboxId, options);
  }

  /** The oldest first. */
  listSnapshots(options?: ListSnapshotsOptions): Promise<SnapshotInfo[]> {
    return this.#sandboxes.listSnapshots(options);
  }

  /** Brings it back to what it had at a snapshot; if it ran, it runs again. */
  restoreSandbox(sandboxId: string, snapshotId: string, options?: RestoreOptions): Promise<SandboxInfo> {
    return this.#sandboxes.restore(sandboxId, snapshotId, options);
  }

  /** Sandboxes that were made of it stay as they are. */
  deleteSnapshot(snapshotId: string, options?: CallOptions): Promise<void> {
    return this.#sandboxes.deleteSnapshot(snapshotId, options);
  }

  /** Makes sandboxes of what this one has, all of them or none. They are not started. */
  forkSandbox(sandboxId: string, options?: ForkOptions): Promise<SandboxInfo[]> {
    return this.#sandboxes.fork(sandboxId, options);
  }

  /** Homes that outlive sandboxes. */
  listHomes(options?: OwnerOptions): Promise<HomeInfo[]> {
    return this.#sandboxes.listHomes(options);
  }

  /** Removes one with all that is in it; refused while a sandbox runs with it. */
  deleteHome(name: string, options?: OwnerOptions): Promise<void> {
    return this.#sandboxes.deleteHome(name, options);
  }

  /**
   * Keeps a secret on the server for sandboxes that name it, in place of one of that name. No call gives its value back. Sandboxes
   * that run send it from now on if it is as long as the one before and for the same hosts, otherwise from their next start on.
   */
  putSecret(name: string, secret: PutSecretOptions): Promise<SecretInfo> {
    return this.#sandboxes.putSecret(name, secret);
  }

  /** Names, hosts, places and times of the secrets that the server keeps. */
  listSecrets(options?: OwnerOptions): Promise<SecretInfo[]> {
    return this.#sandboxes.listSecrets(options);
  }

  /** In force at once, for sandboxes that run too. */
  deleteSecret(name: string, options?: OwnerOptions): Promise<void> {
    return this.#sandboxes.deleteSecret(name, options);
  }

  /** New rules, at once, also for a running sandbox. */
  updatePermissions(
    sandboxId: string,
    rules: RuleOptions | readonly Rule[],
    options?: CallOptions,
  ): Promise<SandboxInfo> {
    return this.#sandboxes.updatePermissions(sandboxId, rules, options);
  }

  /** Another list for a filtered network, at once: connections that it does not allow are cut. */
  updateNetwork(sandboxId: string, network: NetworkList, options?: CallOptions): Promise<SandboxInfo> {
    return this.#sandboxes.updateNetwork(sandboxId, network, options);
  }

  /** Has it destroyed by itself after this time, in place of what was said before; also when it does not run. */
  updateExpiry(sandboxId: string, expiresInMs: number, options?: UpdateExpiryOptions): Promise<SandboxInfo> {
    return this.#sandboxes.updateExpiry(sandboxId, expiresInMs, options);
  }

  /** Which rule decides about a path, and which ones lost. */
  explainPath(sandboxId: string, path: string, options?: CallOptions): Promise<PathExplanation> {
    return this.#sandboxes.explainPath(sandboxId, path, options);
  }

  // Commands.

  /** Runs a command and waits for its end. */
  exec(sandboxId: string, command: Command, options?: ExecOptions): Promise<RunResult> {
    return this.#exec.exec(sandboxId, command, options);
  }

  /** Starts a command with the first read, and gives its output as it comes, then its end. Leaving the loop kills it. */
  execStream(
    sandboxId: string,
    command: Command,
    options?: CommandOptions,
  ): AsyncGenerator<CommandEvent, void, undefined> {
    return this.#exec.execStream(sandboxId, command, options);
  }

  /** The same with input that comes while it runs. */
  execInteractive(
    sandboxId: string,
    command: Command,
    options: InteractiveOptions,
  ): AsyncGenerator<CommandEvent, void, undefined> {
    return this.#exec.execInteractive(sandboxId, command, options);
  }

  // Sessions.

  /** A shell that keeps its directory, variables and functions from one command to the next. */
  createSession(sandboxId: string, options?: CreateSessionOptions): Promise<SessionInfo> {
    return this.#sessions.create(sandboxId, options);
  }

  /** One session, also one that is closed. */
  getSession(sessionId: string, options?: CallOptions): Promise<SessionInfo> {
    return this.#sessions.get(sessionId, options);
  }

  /** The sessions of a sandbox. */
  listSessions(sandboxId: string, options?: CallOptions): Promise<SessionInfo[]> {
    return this.#sessions.list(sandboxId, options);
  }

  /** Ends its shell and all that runs in it. */
  destroySession(sessionId: string, options?: CallOptions): Promise<void> {
    return this.#sessions.destroy(sessionId, options);
  }

  /** The same as destroySession. */
  closeSession(sessionId: string, options?: CallOptions): Promise<void> {
    return this.#sessions.destroy(sessionId, options);
  }

  /** Runs a line in the session's shell and waits for its end. */
  sessionExec(sessionId: string, command: string, options?: SessionExecOptions): Promise<RunResult> {
    return this.#sessions.exec(sessionId, command, options);
  }

  /** Runs a line in the session's shell with the first read, and gives its output as it comes, then its end. */
  sessionExecStream(
    sessionId: string,
    command: string,
    options?: SessionStreamOptions,
  ): AsyncGenerator<CommandEvent, void, undefined> {
    return this.#sessions.execStream(sessionId, command, options);
  }

  // Processes. Each is known by its number or its tag: the newest that has it, one that lives before one that has ended.

  /** Starts a process that outlives the call and the connection. */
  startProcess(sandboxId: string, command: Command, options?: SpawnOptions): Promise<ProcessInfo> {
    return this.#processes.start(sandboxId, command, options);
  }

  /** What runs in the sandbox, also commands, sessions and terminals; then started processes that ended lately. */
  listProcesses(sandboxId: string, options?: CallOptions): Promise<ProcessInfo[]> {
    return this.#processes.list(sandboxId, options);
  }

  /** Resolves when attached. What is kept of its output, then what comes, then its end. Leaving the loop leaves it alone. */
  attachProcess(
    sandboxId: string,
    process: number | string,
    options?: AttachOptions,
  ): Promise<AsyncGenerator<ProcessEvent, void, undefined>> {
    return this.#processes.attach(sandboxId, process, options);
  }

  /** Resolves when the process has room for it. */
  sendInput(
    sandboxId: string,
    process: number | string,
    data: string | Uint8Array,
    options?: CallOptions,
  ): Promise<void> {
    return this.#processes.sendInput(sandboxId, process, data, options);
  }

  /** The process reads the end of its input. */
  closeInput(sandboxId: string, process: number | string, options?: CallOptions): Promise<void> {
    return this.#processes.closeInput(sandboxId, process, options);
  }

  /** To the process and all that it started: "SIGTERM", "TERM" or 15. SIGKILL leaves nothing of it. */
  signalProcess(
    sandboxId: string,
    process: number | string,
    signal: string | number,
    options?: CallOptions,
  ): Promise<void> {
    return this.#processes.signal(sandboxId, process, signal, options);
  }

  /** Gives the terminal of a process another size. */
  resizeProcess(sandboxId: string, process: number | string, size: TerminalSize, options?: CallOptions): Promise<void> {
    return this.#processes.resize(sandboxId, process, size, options);
  }

  /** Resolves when it has ended, however long that takes. */
  waitProcess(sandboxId: string, process: number | string, options?: CallOptions): Promise<ProcessInfo> {
    return this.#processes.wait(sandboxId, process, options);
  }

  // Code, in contexts that keep its names.

  /** Makes an interpreter that stays until it is deleted or the sandbox is stopped. */
  createCodeContext(sandboxId: string, options?: CodeContextOptions): Promise<CodeContextInfo> {
    return this.#code.create(sandboxId, options);
  }

  listCodeContexts(sandboxId: string, options?: CallOptions): Promise<CodeContextInfo[]> {
    return this.#code.list(sandboxId, options);
  }

  /** Ends the interpreter with all that it started, and begins with a new one. */
  restartCodeContext(sandboxId: string, contextId: string, options?: CallOptions): Promise<CodeContextInfo> {
    return this.#code.restart(sandboxId, contextId, options);
  }

  /** The code that runs ends with a KeyboardInterrupt, and the names stay. */
  interruptCodeContext(sandboxId: string, contextId: string, options?: CallOptions): Promise<void> {
    return this.#code.interrupt(sandboxId, contextId, options);
  }

  deleteCodeContext(sandboxId: string, contextId: string, options?: CallOptions): Promise<void> {
    return this.#code.delete(sandboxId, contextId, options);
  }

  /** Runs code with the first read: that its turn has come, what it prints and shows as it does, then its end. Leaving the loop interrupts it. */
  runCode(sandboxId: string, code: string, options?: CodeOptions): AsyncGenerator<CodeEvent, void, undefined> {
    return this.#code.run(sandboxId, code, options);
  }

  // Changes.

  /** What the sandbox changed and has not synced, in path order; with `fold`, for people. */
  listChanges(sandboxId: string, options?: ChangesOptions): Listing<Change> {
    return this.#changes.list(sandboxId, options);
  }

  /** The same as unified diffs. */
  diffChanges(sandboxId: string, options?: DiffOptions): AsyncGenerator<FileDiff, void, undefined> {
    return this.#changes.diff(sandboxId, options);
  }

  /** Writes changes into the codebase as a new version, as far as the rules allow. */
  applyChanges(sandboxId: string, options?: ApplyOptions): Promise<ApplyResult> {
    return this.#changes.apply(sandboxId, options);
  }

  /** Undoes changes, and tells which. */
  discardChanges(sandboxId: string, options?: PathsOptions): Promise<Change[]> {
    return this.#changes.discard(sandboxId, options);
  }

  // Files of a running sandbox, as a process inside sees them.

  /** A file in pieces. Nothing is asked for before the first read, which is where errors show. */
  readFile(sandboxId: string, path: string, options?: CallOptions): ReadableStream<Uint8Array> {
    return this.#files.read(sandboxId, path, options);
  }

  /** A file, all at once. */
  readFileBytes(sandboxId: string, path: string, options?: CallOptions): Promise<Uint8Array> {
    return this.#files.readBytes(sandboxId, path, options);
  }

  /** Writes a file, or adds to it. */
  writeFile(sandboxId: string, path: string, content: Content, options?: WriteFileOptions): Promise<FileInfo> {
    return this.#files.write(sandboxId, path, content, options);
  }

  /** What is in a directory. */
  listDirectory(sandboxId: string, path: string, options?: RecursiveOptions & WithAttributes): Promise<FileInfo[]> {
    return this.#files.list(sandboxId, path, options);
  }

  /** What is at a path; of a symbolic link, the link. */
  statFile(sandboxId: string, path: string, options?: CallOptions & WithAttributes): Promise<FileInfo> {
    return this.#files.stat(sandboxId, path, options);
  }

  /** Makes a directory; when recursive also those on the way, and one that is there is no error. */
  makeDirectory(sandboxId: string, path: string, options?: RecursiveOptions): Promise<FileInfo> {
    return this.#files.makeDirectory(sandboxId, path, options);
  }

  /** Removes a file, or a directory with all below it when recursive. */
  removeFile(sandboxId: string, path: string, options?: RecursiveOptions): Promise<void> {
    return this.#files.remove(sandboxId, path, options);
  }

  /** Moves a file or a directory. */
  moveFile(sandboxId: string, from: string, to: string, options?: CallOptions): Promise<FileInfo> {
    return this.#files.move(sandboxId, from, to, options);
  }

  /** Resolves when the watch is on. Ends when the sandbox stops; leaving the loop, or the signal, ends it before. */
  watchFiles(
    sandboxId: string,
    path: string,
    options?: RecursiveOptions,
  ): Promise<AsyncGenerator<FileChange, void, undefined>> {
    return this.#files.watch(sandboxId, path, options);
  }

  /** A terminal in a running sandbox. */
  openTerminal(sandboxId: string, options: OpenTerminalOptions): Promise<TerminalConnection> {
    return openTerminal(this.#rpc, sandboxId, options);
  }

  /** Where a port of a sandbox is reached over HTTP, with a token that opens it. */
  getPort(sandboxId: string, port: number, options?: GetPortOptions): Promise<PortInfo> {
    return getPort(this.#rpc, sandboxId, port, options);
  }

  /** Resolves when something in the sandbox accepts connections there; PortClosedError when nothing has in time. */
  waitForPort(sandboxId: string, port: number, options?: WaitForPortOptions): Promise<void> {
    return waitForPort(this.#rpc, sandboxId, port, options);
  }

  /** A connection to what listens at a port of a running sandbox. */
  connectPort(sandboxId: string, port: number, options?: CallOptions): Promise<PortConnection> {
    return connectPort(this.#rpc, sandboxId, port, options);
  }

  // The audit log.

  /** Oldest first. */
  listEvents(options?: ListEventsOptions): Listing<AuditEvent> {
    return this.#events.list(options);
  }

  /** What happens from now on, or from a sequence on. Ends only with the caller or the server. */
  watchEvents(options?: WatchEventsOptions): AsyncGenerator<AuditEvent, void, undefined> {
    return this.#events.watch(options);
  }

  // The server.

  /** What the server is, what it can do, and who it takes the caller for. */
  getServerInfo(options?: CallOptions): Promise<ServerInfo> {
    return this.#system.getServerInfo(options);
  }

  /** For administrators: makes an API key. */
  createKey(request: CreateKeyRequest, options?: CallOptions): Promise<CreatedKey> {
    return this.#system.createKey(request, options);
  }

  /** For administrators: all keys, without their secrets. */
  listKeys(options?: CallOptions): Promise<ApiKey[]> {
    return this.#system.listKeys(options);
  }

  /** For administrators: takes a key out of force, at once. */
  revokeKey(keyId: string, options?: CallOptions): Promise<void> {
    return this.#system.revokeKey(keyId, options);
  }
}
