import { AgentError, WorkspaceError } from "../errors.ts";
import type { Executor } from "../executors/executor.ts";
import { FenseExecutor } from "../executors/fense/fense-executor.ts";
import { SubprocessExecutor } from "../executors/subprocess/subprocess-executor.ts";
import { tellListener } from "../pool/events.ts";
import type { ExecutionRequest, ExecutionResult, SecurityMode } from "../types.ts";
import { AgentWorkspace } from "../workspace/agent-workspace.ts";
import { checkSessionId } from "../workspace/session-directory.ts";
import type { Workspace, WorkspaceEntry } from "../workspace/workspace.ts";
import type { ManagerEvent, ManagerListener } from "./events.ts";
import { Execution } from "./execution.ts";
import { type ExecutionRecord, History } from "./history.ts";
import type { SandboxManagerOptions } from "./options.ts";
import { type PooledExecutor, SessionExecutors } from "./session-executors.ts";

const CONFIRMATION_TIMEOUT_MS = 120_000;
const HISTORY_LIMIT = 100;

/** The one entrance for code of a session: assess, ask, choose, run, record. */
export class SandboxManager implements AsyncDisposable {
  readonly sessionId: string;
  readonly securityMode: SecurityMode;
  readonly #options: SandboxManagerOptions;
  readonly #sessionExecutors: SessionExecutors;
  readonly #history: History;
  readonly #listeners = new Set<ManagerListener>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  #workspace: Workspace | undefined;
  #ownExecutors: readonly Executor[] = [];
  #cleanup: Promise<void> | undefined;

  constructor(options: SandboxManagerOptions) {
    const { sessionId, securityMode = "STRICT", pool, workspace, historyLimit = HISTORY_LIMIT, onEvent } = options;
    const executors = options.executors ?? (pool === undefined ? undefined : []);
    checkSessionId(sessionId);
    if (securityMode !== "STRICT" && securityMode !== "PERMISSIVE") {
      throw new AgentError(`the security mode ${JSON.stringify(securityMode)} is not known`);
    }
    if (executors === undefined && workspace !== undefined && !(workspace instanceof AgentWorkspace)) {
      const hint = "give the manager executors or a pool";
      throw new AgentError("the default executors need a workspace that is a directory", { hint });
    }
    this.sessionId = sessionId;
    this.securityMode = securityMode;
    this.#options = options;
    this.#workspace = workspace;
    this.#history = new History(historyLimit);
    this.#sessionExecutors = new SessionExecutors(sessionId, {
      pool,
      executors: () => executors ?? this.#defaultExecutors(),
    });
    if (onEvent !== undefined) this.#listeners.add(onEvent);
  }

  /** The files that the code sees. */
  get workspace(): Workspace {
    this.#workspace ??= this.#makeWorkspace();
    return this.#workspace;
  }

  /** The last executions, oldest first. */
  get history(): readonly ExecutionRecord[] {
    return this.#history.records;
  }

  /** Returns the function that ends the listening. */
  subscribe(listener: ManagerListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Whatever the code does, and whatever is decided about it, is a result. Thrown is the reason of an aborted signal,
   * also if that is the manager's own because it is being cleaned up.
   */
  async execute(
    request: ExecutionRequest,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ExecutionResult> {
    const closing = this.#closing.signal;
    signal?.throwIfAborted();
    closing.throwIfAborted();
    const either = signal === undefined ? closing : AbortSignal.any([signal, closing]);
    const executing = new Execution(this.#parts(), either).run(request);
    this.#underWay.add(executing);
    try {
      return await executing;
    } finally {
      this.#underWay.delete(executing);
    }
  }

  /**
   * Ends what is under way, gives the pool its instance back, and closes the executors that this manager made. Files
   * in an AgentWorkspace stay.
   */
  async cleanup(): Promise<void> {
    this.#cleanup ??= this.#cleanUp();
    await this.#cleanup;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cleanup();
  }

  async #cleanUp(): Promise<void> {
    this.#closing.abort(new AgentError(`the manager of session ${this.sessionId} is cleaned up`));
    await Promise.allSettled(this.#underWay);
    const endings = this.#ownExecutors.map((executor) => executor[Symbol.asyncDispose]());
    const outcomes = await Promise.allSettled([...endings, this.#options.pool?.release(this.sessionId)]);
    const errors = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    if (errors.length > 0) throw new AggregateError(errors, "the manager could not be cleaned up completely");
  }

  #parts(): ConstructorParameters<typeof Execution>[0] {
    const { assess, confirmation, confirmationTimeoutMs = CONFIRMATION_TIMEOUT_MS } = this.#options;
    return {
      sessionId: this.sessionId,
      securityMode: this.securityMode,
      assess,
      confirmation,
      confirmationTimeoutMs,
      sessionExecutors: this.#sessionExecutors,
      history: this.#history,
      tell: (event) => this.#tell(event),
    };
  }

  #makeWorkspace(): Workspace {
    const { pool } = this.#options;
    if (pool === undefined) return new AgentWorkspace(this.sessionId);
    const { signal } = this.#closing;
    return new PooledWorkspace(async () => {
      signal.throwIfAborted();
      return await pool.acquire(this.sessionId, { signal });
    });
  }

  #defaultExecutors(): readonly Executor[] {
    const { workspace } = this;
    if (this.#ownExecutors.length === 0 && workspace instanceof AgentWorkspace) {
      const { sandboxes, syscallFilter } = this.#options;
      const subprocess = syscallFilter === undefined ? [] : [new SubprocessExecutor({ workspace, syscallFilter })];
      this.#ownExecutors = [...subprocess, new FenseExecutor({ workspace, sandboxes })];
    }
    return this.#ownExecutors;
  }

  #tell(event: ManagerEvent): void {
    for (const listener of this.#listeners) tellListener(listener, event);
  }
}

/** The files of whatever the session has from its pool at that moment. */
class PooledWorkspace implements Workspace {
  readonly #acquire: () => Promise<PooledExecutor>;

  constructor(acquire: () => Promise<PooledExecutor>) {
    this.#acquire = acquire;
  }

  async readFile(path: string): Promise<string> {
    return await (await this.#current()).readFile(path);
  }

  async readFileBytes(path: string): Promise<Uint8Array> {
    return await (await this.#current()).readFileBytes(path);
  }

  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    await (await this.#current()).writeFile(path, content);
  }

  async list(path?: string, options?: { readonly recursive?: boolean | undefined }): Promise<WorkspaceEntry[]> {
    return await (await this.#current()).list(path, options);
  }

  async delete(path: string, options?: { readonly recursive?: boolean | undefined }): Promise<void> {
    await (await this.#current()).delete(path, options);
  }

  async stat(path: string): Promise<WorkspaceEntry> {
    return await (await this.#current()).stat(path);
  }

  async #current(): Promise<Workspace> {
    const { workspace, type } = await this.#acquire();
    if (workspace !== undefined) return workspace;
    throw new WorkspaceError("NOT_PERMITTED", `the pool's executors (${type}) do not show their files`);
  }
}
