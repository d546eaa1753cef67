import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { addAbortSignal } from "node:stream";
import { text } from "node:stream/consumers";
import { cancelled, IsolationError, notRunning } from "../backend/isolation-error.ts";
import type { Owner } from "../filesystem/presentation.ts";

/** The newest version of the API this code was written against; a daemon that is older is spoken to in its own. */
const NEWEST_API = "1.43";
const CONNECT_TIMEOUT_MS = 10_000;

interface RequestOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

/**
 * An answer of the daemon that is not a success. What it said names paths of the host, containers and networks: that is
 * for us and for the log, and never in the message, wherever the error ends up.
 */
export class DaemonError extends IsolationError {
  readonly status: number;
  readonly said: string;

  constructor(status: number, said: string) {
    super("INTERNAL", "the Docker engine refused a request", { cause: new Error(`HTTP ${status}: ${said}`) });
    this.status = status;
    this.said = said;
  }
}

/** What the daemon says about itself, as far as we ask. */
export interface DaemonInfo {
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

/** A Docker daemon behind its socket. Whatever fails is an IsolationError. */
export class DockerDaemon {
  readonly socketPath: string;
  /** "/v1.43"; "" while the version is not agreed on. */
  readonly #base: string;

  private constructor(socketPath: string, base: string) {
    this.socketPath = socketPath;
    this.#base = base;
  }

  /** Finds out which version of the API both sides speak. */
  static async connect(socketPath: string): Promise<DockerDaemon> {
    const { ApiVersion, MinAPIVersion = "0.0" } = await new DockerDaemon(socketPath, "").get<{
      ApiVersion: string;
      MinAPIVersion?: string;
    }>("/version", { signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS) });
    const [newest = NEWEST_API] = [ApiVersion, NEWEST_API].sort(compareVersions);
    const spoken = [MinAPIVersion, newest].sort(compareVersions)[1];
    return new DockerDaemon(socketPath, `/v${spoken}`);
  }

  info(): Promise<DaemonInfo> {
    return this.get("/info");
  }

  async get<Answer>(path: string, options: RequestOptions = {}): Promise<Answer> {
    return (await this.#ask("GET", path, options)) as Answer;
  }

  async post<Answer>(path: string, options: RequestOptions = {}): Promise<Answer> {
    return (await this.#ask("POST", path, options)) as Answer;
  }

  async delete(path: string, options: RequestOptions): Promise<void> {
    await this.#ask("DELETE", path, options);
  }

  /** An answer that comes in pieces: lines of JSON, or an archive. */
  async stream(method: string, path: string, options: RequestOptions): Promise<IncomingMessage> {
    return await described(options.signal, () => accepted(this.#send(method, path, options)));
  }

  /** Turns the request's connection into a raw one, both ways, with half-close. */
  async hijack(path: string, options: RequestOptions): Promise<Socket> {
    const sent = this.#send("POST", path, options, { Connection: "Upgrade", Upgrade: "tcp" });
    const socket = await described(options.signal, async () => await Promise.race([upgraded(sent), refused(sent)]));
    return socket.unref(); // see IsolationOptions.holdsProcess
  }

  #ask(method: string, path: string, options: RequestOptions): Promise<unknown> {
    return described(options.signal, async () => {
      const answer = await accepted(this.#send(method, path, options));
      return parsed(await text(options.signal ? addAbortSignal(options.signal, answer) : answer));
    });
  }

  #send(
    method: string,
    path: string,
    { query = {}, body, signal }: RequestOptions,
    headers: Readonly<Record<string, string>> = {},
  ): ClientRequest {
    const content = body === undefined ? undefined : JSON.stringify(body);
    const sent = request({
      socketPath: this.socketPath,
      method,
      path: `${this.#base}${path}?${new URLSearchParams(query)}`,
      headers: { ...headers, ...(content !== undefined && { "Content-Type": "application/json" }) },
      ...(signal !== undefined && { signal }),
    });
    // Whoever waits for the answer is told; what breaks later, breaks the answer's own stream.
    sent.on("error", () => {});
    return sent.end(content);
  }
}

const SUCCESSES = [200, 201, 204, 304];

/** The head of a success. */
async function accepted(sent: ClientRequest): Promise<IncomingMessage> {
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  if (!SUCCESSES.includes(answer.statusCode!)) throw await refusal(answer);
  return answer;
}

async function upgraded(sent: ClientRequest): Promise<Socket> {
  const [, socket, head] = (await once(sent, "upgrade")) as [IncomingMessage, Socket, Buffer];
  if (head.length > 0) socket.unshift(head);
  return socket;
}

/** Rejects with what the daemon answers instead of handing its connection over. */
async function refused(sent: ClientRequest): Promise<never> {
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  throw await refusal(answer);
}

async function refusal(answer: IncomingMessage): Promise<DaemonError> {
  const said = await text(answer);
  const { message } = Object(parsed(said)) as { message?: unknown };
  return new DaemonError(answer.statusCode!, String(message ?? said).trim());
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return content;
  }
}

async function described<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw describe(error as Error, signal);
  }
}

function describe(error: Error, signal: AbortSignal | undefined): IsolationError {
  if (signal?.aborted && signal.reason instanceof Error && signal.reason.name !== "TimeoutError") {
    return cancelled(error);
  }
  if (error instanceof DaemonError) return error;
  return new IsolationError("RUNTIME_UNAVAILABLE", "the Docker engine does not answer", {
    hint: "see whether it runs: docker info",
    cause: error,
  });
}

/** For the log, which may know everything. */
export function whatFailed(error: unknown): string {
  return error instanceof DaemonError ? `HTTP ${error.status}: ${error.said}` : String(error);
}

export function isStatus(error: unknown, ...statuses: readonly number[]): error is DaemonError {
  return error instanceof DaemonError && statuses.includes(error.status);
}

function compareVersions(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split(".").map(Number);
  const [majorB = 0, minorB = 0] = b.split(".").map(Number);
  return majorA - majorB || minorA - minorB;
}

/** A process the daemon started in a container, with the connection to its streams. */
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

export async function startExec(daemon: DockerDaemon, request: ExecRequest, signal?: AbortSignal): Promise<Exec> {
  try {
    const { Id: id } = await daemon.post<{ Id: string }>(`/containers/${request.container}/exec`, {
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
    const connection = await daemon.hijack(`/exec/${id}/start`, { body: { Detach: false, Tty: request.terminal } });
    connection.setTimeout(0);
    connection.setNoDelay(true);
    return { id, connection };
  } catch (error) {
    throw describeExecFailure(error);
  }
}

/** The exit code the daemon saw; undefined when it no longer knows the process. */
export async function exitCodeOf(daemon: DockerDaemon, execId: string): Promise<number | undefined> {
  try {
    const state = await daemon.get<{ ExitCode: number | null; Running: boolean }>(`/exec/${execId}/json`);
    return state.Running ? undefined : (state.ExitCode ?? undefined);
  } catch (error) {
    if (isStatus(error, 404)) return undefined;
    throw error;
  }
}

/** The last: what the daemon's runtime itself runs in the container, a few threads, did not fit into the limit on processes. */
const NO_ROOM =
  /resource temporarily unavailable|cannot allocate memory|no space left|too many open files|pids limit|read init-p/i;

/** What became of a process that was not started; `said` is what the daemon's runtime told instead of starting it. */
export function describeExecFailure(error: unknown, said = ""): IsolationError {
  if (error instanceof IsolationError && !(error instanceof DaemonError)) return error;
  const text = error instanceof DaemonError ? error.said : said;
  if (isStatus(error, 404, 409) || /is not running|no such container|cannot exec in a (paused|stopped)/i.test(text)) {
    return notRunning(error);
  }
  if (NO_ROOM.test(text)) {
    return new IsolationError("RESOURCES_EXHAUSTED", "the sandbox has no room for another process", {
      hint: "wait for its commands to end, or give it higher limits",
      cause: error,
    });
  }
  const code = error instanceof DaemonError ? "INTERNAL" : "RUNTIME_UNAVAILABLE";
  return new IsolationError(code, "the engine could not start a process in the sandbox", { cause: error });
}
