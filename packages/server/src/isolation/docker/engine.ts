import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import DockerModem from "docker-modem";
import { cancelled, notRunning, SandboxError } from "../backend/errors.ts";
import type { Owner } from "../filesystem/presentation.ts";

/** The newest version of the API this code was written against; an engine that is older is spoken to in its own. */
const NEWEST_API = "1.43";
const CONNECT_TIMEOUT_MS = 10_000;

type DialMode = Pick<DockerModem.DialOptions, "method" | "path"> & Partial<DockerModem.DialOptions>;

interface RequestOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

/**
 * An answer of the engine that is not a success. What it said names paths of the host, containers and networks: that is
 * for us and for the log, and never in the message, wherever the error ends up.
 */
export class EngineError extends SandboxError {
  readonly status: number;
  readonly said: string;

  constructor(status: number, said: string) {
    super("INTERNAL", "the Docker engine refused a request", { cause: new Error(`HTTP ${status}: ${said}`) });
    this.status = status;
    this.said = said;
  }
}

/** What the engine says about itself, as far as we ask. */
export interface EngineInfo {
  readonly OSType: string;
  readonly DefaultRuntime: string;
  readonly Runtimes: Readonly<Record<string, { readonly path?: string }>>;
  readonly SecurityOptions: readonly string[] | null;
  readonly MemoryLimit: boolean;
  readonly SwapLimit: boolean;
  readonly CpuCfsQuota: boolean;
  readonly CPUShares: boolean;
  readonly PidsLimit: boolean;
}

/** A Docker engine behind its socket. Whatever fails is a SandboxError. */
export class Engine {
  readonly #modem: DockerModem;
  readonly #socketPath: string;

  private constructor(modem: DockerModem, socketPath: string) {
    this.#modem = modem;
    this.#socketPath = socketPath;
  }

  /** Finds out which version of the API both sides speak. */
  static async connect(socketPath: string): Promise<Engine> {
    const first = new Engine(openModem(socketPath), socketPath);
    const { ApiVersion, MinAPIVersion = "0.0" } = await first.get<{ ApiVersion: string; MinAPIVersion?: string }>(
      "/version",
      { signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS) },
    );
    const [newest = NEWEST_API] = [ApiVersion, NEWEST_API].sort(compareVersions);
    const spoken = [MinAPIVersion, newest].sort(compareVersions)[1];
    return new Engine(openModem(socketPath, `v${spoken}`), socketPath);
  }

  get socketPath(): string {
    return this.#socketPath;
  }

  info(): Promise<EngineInfo> {
    return this.get("/info");
  }

  async get<Answer>(path: string, options: RequestOptions = {}): Promise<Answer> {
    return (await this.#dial({ method: "GET", path }, options)) as Answer;
  }

  async post<Answer>(path: string, options: RequestOptions = {}): Promise<Answer> {
    return (await this.#dial({ method: "POST", path }, options)) as Answer;
  }

  async delete(path: string, options: RequestOptions): Promise<void> {
    await this.#dial({ method: "DELETE", path }, options);
  }

  /** An answer that comes in pieces: lines of JSON. */
  async stream(path: string, options: RequestOptions): Promise<Readable> {
    return (await this.#dial({ method: "POST", path, isStream: true }, options)) as Readable;
  }

  /** Turns the request's connection into a raw one, both ways, with half-close. */
  async hijack(path: string, options: RequestOptions): Promise<Socket> {
    // `isStream` makes the client read the text of a refusal; a success is an upgraded socket in any case.
    const mode = { method: "POST", path, hijack: true, openStdin: true, isStream: true };
    return ((await this.#dial(mode, options)) as Socket).unref(); // see IsolationOptions.holdsProcess
  }

  #dial(mode: DialMode, { query = {}, body = {}, signal }: RequestOptions): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const options: DockerModem.DialOptions = {
      ...mode,
      path: `${mode.path}?`,
      options: { _query: query, _body: body },
      statusCodes: SUCCESSES,
      ...(signal === undefined ? {} : { abortSignal: signal }),
    };
    this.#modem.dial(options, (error, answer) => {
      if (error === null || error === undefined) resolve(answer);
      else reject(describe(error, signal));
    });
    return promise;
  }
}

const SUCCESSES = { 200: true, 201: true, 204: true, 304: true };

// `host` and `protocol` are named, or the library would take them from the environment.
function openModem(socketPath: string, version?: string): DockerModem {
  return new DockerModem({ socketPath, host: undefined, protocol: "http", version });
}

function describe(error: Error, signal: AbortSignal | undefined): SandboxError {
  if (signal?.aborted && signal.reason instanceof Error && signal.reason.name !== "TimeoutError") {
    return cancelled(error);
  }
  const { statusCode } = error as { statusCode?: unknown };
  if (typeof statusCode !== "number") {
    return new SandboxError("RUNTIME_UNAVAILABLE", "the Docker engine does not answer", {
      hint: "see whether it runs: docker info",
      cause: error,
    });
  }
  return new EngineError(statusCode, error.message.replace(/^\(HTTP code \d+\) [^-]* - /, "").trim());
}

/** For the log, which may know everything. */
export function whatFailed(error: unknown): string {
  return error instanceof EngineError ? `HTTP ${error.status}: ${error.said}` : String(error);
}

export function isStatus(error: unknown, ...statuses: readonly number[]): error is EngineError {
  return error instanceof EngineError && statuses.includes(error.status);
}

function compareVersions(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split(".").map(Number);
  const [majorB = 0, minorB = 0] = b.split(".").map(Number);
  return majorA - majorB || minorA - minorB;
}

/** A process the engine started in a container, with the connection to its streams. */
export interface Exec {
  readonly id: string;
  readonly connection: Socket;
}

export interface ExecRequest {
  readonly container: string;
  readonly commandLine: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly owner: Owner;
  readonly stdin: boolean;
  readonly terminal: boolean;
}

export async function startExec(engine: Engine, request: ExecRequest, signal?: AbortSignal): Promise<Exec> {
  try {
    const { Id: id } = await engine.post<{ Id: string }>(`/containers/${request.container}/exec`, {
      body: {
        Cmd: request.commandLine,
        Env: Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
        User: `${request.owner.uid}:${request.owner.gid}`,
        AttachStdin: request.stdin,
        AttachStdout: true,
        AttachStderr: true,
        Tty: request.terminal,
        WorkingDir: "/",
      },
      signal,
    });
    // Not with the caller's signal: once the process runs, letting go of its connection would not end it.
    const connection = await engine.hijack(`/exec/${id}/start`, { body: { Detach: false, Tty: request.terminal } });
    connection.setTimeout(0);
    connection.setNoDelay(true);
    return { id, connection };
  } catch (error) {
    throw describeExecFailure(error);
  }
}

/** The exit code the engine saw; undefined when it no longer knows the process. */
export async function exitCodeOf(engine: Engine, execId: string): Promise<number | undefined> {
  try {
    const state = await engine.get<{ ExitCode: number | null; Running: boolean }>(`/exec/${execId}/json`);
    return state.Running ? undefined : (state.ExitCode ?? undefined);
  } catch (error) {
    if (isStatus(error, 404)) return undefined;
    throw error;
  }
}

/** The last: what the engine's runtime itself runs in the container, a few threads, did not fit into the limit on processes. */
const NO_ROOM =
  /resource temporarily unavailable|cannot allocate memory|no space left|too many open files|pids limit|read init-p/i;

/** What became of a process that was not started; `said` is what the engine's runtime told instead of starting it. */
export function describeExecFailure(error: unknown, said = ""): SandboxError {
  if (error instanceof SandboxError && !(error instanceof EngineError)) return error;
  const text = error instanceof EngineError ? error.said : said;
  if (isStatus(error, 404, 409) || /is not running|no such container|cannot exec in a (paused|stopped)/i.test(text)) {
    return notRunning(error);
  }
  if (NO_ROOM.test(text)) {
    return new SandboxError("RESOURCES_EXHAUSTED", "the sandbox has no room for another process", {
      hint: "wait for its commands to end, or give it higher limits",
      cause: error,
    });
  }
  const code = error instanceof EngineError ? "INTERNAL" : "RUNTIME_UNAVAILABLE";
  return new SandboxError(code, "the engine could not start a process in the sandbox", { cause: error });
}
