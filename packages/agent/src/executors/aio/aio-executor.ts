import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ExecutorError, PathTraversalError } from "../../errors.ts";
import { type ExecutionOutcome, LANGUAGES, type Language } from "../../types.ts";
import { namesOf } from "../../workspace/path.ts";
import { type ExecutionTask, type Executor, failedOutcome } from "../executor.ts";
import { runPlan } from "../run-plan.ts";
import { RunningExecutions } from "../running-executions.ts";
import { checkTask } from "../task.ts";
import { AioApi, AioRefusal } from "./api.ts";
import { BashRunner } from "./bash-runner.ts";
import { CodeRunner } from "./code-runner.ts";
import { FileStore } from "./file-store.ts";
import { AioConnectionError } from "./http.ts";
import { LostExecution, type Runner } from "./runner.ts";
import { ShellRunner } from "./shell-runner.ts";

export interface AioExecutorOptions {
  /** "http://127.0.0.1:8080", or a sandbox of ours: "http://127.0.0.1:8080/aio/sb_…". */
  readonly baseUrl: string;
  /** Sent as `X-AIO-API-Key`. */
  readonly apiKey?: string | undefined;
  /** What the names of its sessions on the server begin with; default: one that nobody else has. */
  readonly sessionId?: string | undefined;
  /** Where code runs, files are put, and each execution has a directory for its time; default: the server's workspace. */
  readonly execDir?: string | undefined;
  /** Executions at a time, each in a session of its own; default 4. Servers keep ten sessions or so, for everybody. */
  readonly maxSessions?: number | undefined;
  /** For every request that runs nothing; default 30 s. */
  readonly requestTimeoutMs?: number | undefined;
}

export interface AioServerInfo {
  /** "1.9.4" */
  readonly version: string;
  /** Where code runs. */
  readonly workspace: string;
  readonly calls: "bash" | "shell" | "code";
}

interface Server {
  readonly version: string;
  readonly workspace: string;
  readonly runner: Runner;
}

/**
 * Runs code on an AIO server. One server is one tenant's: there is nothing inside that would keep two apart. Its code is run
 * once at most, whatever becomes of connections and sessions.
 */
export class AioExecutor implements Executor {
  readonly type = "aio";
  readonly languages: ReadonlySet<Language> = new Set(LANGUAGES);
  readonly #api: AioApi;
  readonly #files: FileStore;
  readonly #options: AioExecutorOptions;
  readonly #running = new RunningExecutions();
  readonly #runners = new Set<Runner>();
  /** What is there, as was found out; looked at again after a failure. */
  #server: Promise<Server> | undefined;

  constructor(options: AioExecutorOptions) {
    if (!/^https?:\/\//.test(options.baseUrl) || !URL.canParse(options.baseUrl)) {
      throw new ExecutorError("INVALID_REQUEST", "baseUrl is not a URL with http or https");
    }
    this.#options = options;
    this.#api = new AioApi(options.baseUrl, options.apiKey, options.requestTimeoutMs);
    this.#files = new FileStore(this.#api);
  }

  async execute(
    task: ExecutionTask,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ExecutionOutcome> {
    const { timeoutMs } = checkTask(task, this.languages);
    const files = Object.entries(task.files ?? {}).map(([path, content]) => [checkedPath(path), content] as const);
    return await this.#running.during(signal, async (until) => {
      const plan = await runPlan(task.language, task.code, { signal: until });
      return await this.#trying(until, async ({ runner, workspace }) => {
        const placed = Object.fromEntries(files.map(([path, content]) => [`${workspace}/${path}`, content]));
        await this.#files.write(placed, runner, until).catch(refuseFile);
        if (plan.kind === "failed") return failedOutcome(plan.stderr);
        return await runner.run({ plan, env: task.env ?? {}, timeoutMs, signal: until });
      });
    });
  }

  async check({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    await this.#running.during(signal, async (until) => {
      // Anew: that it was well before says nothing.
      this.#forget();
      await this.#trying(until, async () => {});
    });
  }

  /** What the server is, and which of its calls run the code; asked once, and again after a failure. */
  async server({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<AioServerInfo> {
    return await this.#running.during(signal, (until) =>
      this.#trying(until, async ({ version, workspace, runner }) => ({ version, workspace, calls: runner.name })),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.end(async () => {
      await Promise.all([...this.#runners].map((runner) => runner.close()));
      this.#api.close();
    });
  }

  async #trying<T>(signal: AbortSignal, work: (server: Server) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#known(signal));
    } catch (error) {
      signal.throwIfAborted();
      this.#forget();
      throw executorError(error, this.#api.name);
    }
  }

  async #known(signal: AbortSignal): Promise<Server> {
    // Several may wait for this one, so it is not the signal of the first that ends it.
    this.#server ??= this.#find();
    const leaving = Promise.withResolvers<never>();
    const leave = (): void => leaving.reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([this.#server, leaving.promise]);
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  #forget(): void {
    this.#server?.catch(() => {});
    this.#server = undefined;
  }

  async #find(): Promise<Server> {
    const { signal } = this.#running;
    const { version, workspace: own } = await this.#api.sandbox({ signal });
    const workspace = (this.#options.execDir ?? own).replace(/\/+$/, "");
    return { version, workspace, runner: await this.#runnerFor(workspace) };
  }

  /** The first of the ways that the server has. */
  async #runnerFor(workspace: string): Promise<Runner> {
    const kind = (await this.#has("v1/bash/output")) ? "bash" : (await this.#has("v1/shell/view")) ? "shell" : "code";
    const known = [...this.#runners].find(({ name }) => name === kind);
    if (known !== undefined) return known;
    const { sessionId = `agentfense-${randomUUID()}`, maxSessions = 4 } = this.#options;
    const sessions = { prefix: sessionId, limit: maxSessions };
    const parts = { api: this.#api, files: this.#files, workspace, sessions };
    const runner =
      kind === "bash" ? new BashRunner(parts) : kind === "shell" ? new ShellRunner(parts) : new CodeRunner(parts);
    this.#runners.add(runner);
    return runner;
  }

  /** Asked about a session that nobody has: a server with this call says anything but that there is none. */
  async #has(path: string): Promise<boolean> {
    const nobody = `agentfense-probe-${randomUUID()}`;
    try {
      await this.#api.post(path, { id: nobody, session_id: nobody }, z.unknown(), { signal: this.#running.signal });
      return true;
    } catch (error) {
      if (!(error instanceof AioRefusal)) throw error;
      if (error.status === 401 || error.status === 403) throw error;
      return !error.isMissingCall;
    }
  }
}

/** Paths are relative to where code runs, and stay there. */
function checkedPath(path: string): string {
  try {
    const names = namesOf(path);
    if (names.length > 0) return names.join("/");
  } catch (error) {
    if (!(error instanceof PathTraversalError)) throw error;
    throw new ExecutorError("INVALID_REQUEST", `a file cannot be written: ${error.message}`, { cause: error });
  }
  throw new ExecutorError("INVALID_REQUEST", "a file cannot be written without a name");
}

function refuseFile(error: unknown): never {
  if (error instanceof AioRefusal && error.errorType !== undefined) {
    throw new ExecutorError("INVALID_REQUEST", `a file cannot be written: ${error.message}`, { cause: error });
  }
  throw error;
}

function executorError(error: unknown, name: string): unknown {
  const facts = { cause: error };
  if (error instanceof LostExecution) return new ExecutorError("INTERNAL", error.message, facts);
  if (error instanceof AioConnectionError) {
    return new ExecutorError("UNAVAILABLE", `the AIO server cannot be used: ${error.message}`, facts);
  }
  if (!(error instanceof AioRefusal)) return error;
  const hint = hintFor(error);
  return new ExecutorError("UNAVAILABLE", `${name} refuses: ${error.message}`, { ...facts, hint });
}

function hintFor({ status, errorType }: AioRefusal): string | undefined {
  if (status === 401 || status === 403) return "give the right apiKey";
  const isFixed = errorType === "permission_denied" || errorType === "read_only_filesystem";
  return isFixed ? "code needs a directory that may be written to: execDir" : undefined;
}
