import type { Socket } from "node:net";
import { SandboxError } from "../backend/errors.ts";
import type { Owner } from "../filesystem/presentation.ts";
import { type Engine, EngineError, isStatus } from "./engine.ts";

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

/** Waits for the promise, whatever becomes of it, and no longer than this: whether that was long enough. */
export async function settledWithin(milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(late.resolve, milliseconds, false);
  const settled = () => true;
  return await Promise.race([promise.then(settled, settled), late.promise]).finally(() => clearTimeout(timer));
}

export function notRunning(cause?: unknown): SandboxError {
  return new SandboxError("SANDBOX_NOT_RUNNING", "the sandbox is not running", { hint: "start it first", cause });
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
