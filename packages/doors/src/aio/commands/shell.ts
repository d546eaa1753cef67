import { randomUUID } from "node:crypto";
import * as shape from "../../shape.ts";
import { eventStream, Refusal, Remark, refusalOf, type ServerEvent } from "../envelope.ts";
import { workingDirectory } from "../paths.ts";
import { type AioCall, bare, post, type Route } from "../route.ts";
import type { RunningCommand } from "./running-command.ts";
import { ShellSession } from "./shell-session.ts";
import { hardTimeoutMs, newsWithin, SECONDS, waitFor } from "./waiting.ts";

// Shells that keep their state. Their commands print into one output, and take no input.

const NO_CHANGE_MS = 120_000;
/** What `truncate` leaves. */
const SHOWN_CHARACTERS = 30_000;

const sessionId = shape.string().min(1).max(128);

const execInput = shape.object({
  command: shape.string().min(1),
  id: sessionId.optional(),
  exec_dir: shape.string().optional(),
  async_mode: shape.boolean().default(false),
  timeout: SECONDS.optional(),
  strict: shape.boolean().optional(),
  no_change_timeout: SECONDS.optional(),
  hard_timeout: SECONDS.optional(),
  preserve_symlinks: shape.boolean().default(false),
  truncate: shape.boolean().default(true),
});

export const SHELL_ROUTES: readonly Route[] = [
  post("v1/shell/exec", execInput, exec),
  post("v1/shell/view", shape.object({ id: sessionId }), async (call, { id }) => {
    const session = call.place.shells.require(id);
    if (wantsEvents(call.request)) return eventStream(outputEvents(id, session, call.request.signal));
    return viewed(id, session);
  }),
  post(
    "v1/shell/wait",
    shape.object({ id: sessionId, seconds: SECONDS.optional(), max_wait_seconds: SECONDS.optional() }),
    async ({ place, request: { signal } }, { id, seconds, max_wait_seconds }) => {
      const session = place.shells.require(id);
      const timeMs = (seconds ?? max_wait_seconds ?? 60) * 1000;
      if (session.current !== undefined) await waitFor(session.current, { timeMs, signal });
      return { status: statusOf(session) };
    },
  ),
  post(
    "v1/shell/write",
    shape.object({ id: sessionId, input: shape.string(), press_enter: shape.boolean().default(false) }),
    write,
  ),
  post("v1/shell/kill", shape.object({ id: sessionId }), async ({ place }, { id }) => {
    const session = place.shells.require(id);
    await session.current?.kill();
    const exitCode = exitCodeOf(session.current);
    return { status: "terminated", exit_code: exitCode, returncode: exitCode };
  }),
  post(
    "v1/shell/sessions/create",
    shape.object({
      id: sessionId.optional(),
      exec_dir: shape.string().optional(),
      no_change_timeout: SECONDS.optional(),
      preserve_symlinks: shape.boolean().default(false),
    }),
    async (call, { id = randomUUID(), exec_dir, no_change_timeout }) => {
      // As AIO has it, a session that is there is given, and not made again.
      const session = call.place.shells.find(id) ?? (await open(call, id, exec_dir, no_change_timeout));
      return { session_id: id, working_dir: session.workingDirectory };
    },
  ),
  post(
    "v1/shell/sessions/update",
    shape.object({ id: sessionId, no_change_timeout: SECONDS.optional() }),
    async ({ place }, { id, no_change_timeout }) => {
      const session = place.shells.require(id);
      if (no_change_timeout !== undefined) session.noChangeMs = no_change_timeout * 1000;
      return null;
    },
  ),
  bare("GET", "v1/shell/sessions", async ({ place }) => ({
    sessions: Object.fromEntries(place.shells.all.map(([id, session]) => [id, described(session)])),
  })),
  bare("GET", "v1/shell/sessions/stats", async ({ place }) => {
    const { all, limit } = place.shells;
    const active = all.filter(([, { isBusy }]) => isBusy).length;
    return {
      total_sessions: all.length,
      active_sessions: active,
      idle_sessions: all.length - active,
      max_sessions: limit,
      session_timeout: place.idleMs / 1000,
      usage_ratio: all.length / limit,
    };
  }),
  bare("DELETE", "v1/shell/sessions", async ({ place }) => {
    await place.shells.clear();
    return null;
  }),
  bare("DELETE", "v1/shell/sessions/{session_id}", async ({ place, parameters }) => {
    await place.shells.remove(parameters.session_id!);
    return null;
  }),
];

async function exec(call: AioCall, input: shape.Value<typeof execInput>): Promise<unknown> {
  const { command, exec_dir, hard_timeout, timeout, truncate } = input;
  const id = input.id ?? randomUUID();
  const session = await sessionFor(call, id);
  const running = await session.start(command, {
    directory: exec_dir === undefined ? undefined : workingDirectory(exec_dir),
    timeoutMs: hardTimeoutMs(hard_timeout, call.options),
  });
  const { signal } = call.request;
  if (wantsEvents(call.request)) return eventStream(outputEvents(id, session, signal));
  if (input.async_mode) return executed(id, session, running, "running", truncate);
  const quietMs = input.no_change_timeout === undefined ? session.noChangeMs : input.no_change_timeout * 1000;
  const ended = await waitFor(running, {
    quietMs,
    signal,
    ...(timeout === undefined ? {} : { timeMs: timeout * 1000 }),
  });
  const status = ended === "quiet" ? "no_change_timeout" : statusOf(session);
  const answer = executed(id, session, running, status, truncate);
  const { state } = running;
  if (session.isGone) call.place.shells.forget(id);
  if (state.kind === "lost") throw refusalOf(state.error);
  return answer;
}

/** The session of this id; a new one where there is none, or its shell has ended. */
async function sessionFor(call: AioCall, id: string): Promise<ShellSession> {
  const { shells } = call.place;
  const known = shells.find(id);
  if (known !== undefined && !known.isGone) return known;
  if (known !== undefined) await shells.remove(id);
  return await open(call, id, undefined, undefined);
}

async function open(
  { place, sandbox, request: { signal } }: AioCall,
  id: string,
  directory: string | undefined,
  noChangeSeconds: number | undefined,
): Promise<ShellSession> {
  const workdir = workingDirectory(directory);
  return await place.shells.open(id, async () => {
    const session = await sandbox.session({ workdir, signal });
    const noChangeMs = noChangeSeconds === undefined ? NO_CHANGE_MS : noChangeSeconds * 1000;
    return new ShellSession(session, { workingDirectory: workdir, noChangeMs, budget: place.outputs });
  });
}

/** To a shell that waits, a line is a command; a command that runs can be interrupted, and that is all it takes. */
async function write(
  { place, options }: AioCall,
  { id, input, press_enter }: { readonly id: string; readonly input: string; readonly press_enter: boolean },
): Promise<unknown> {
  const session = place.shells.require(id);
  if (!session.isBusy) {
    const line = input.replace(/\n$/, "");
    if (line.trim() === "") return { status: statusOf(session) };
    if (!press_enter && line === input) {
      throw new Refusal("a line that is not finished cannot be kept", { hint: "send it with press_enter" });
    }
    await session.start(line, { timeoutMs: hardTimeoutMs(undefined, options) });
    return { status: "running" };
  }
  if (input === "\u0003" || input === "C-c") {
    await session.current?.kill();
    return { status: statusOf(session) };
  }
  throw new Refusal("commands of these shells take no input", {
    hint: "start it with /v1/bash/exec and async_mode, and send input with /v1/bash/write",
  });
}

function wantsEvents(request: Request): boolean {
  return request.headers.get("accept")?.includes("text/event-stream") === true;
}

/** What is printed as it is printed, then how it ended. */
async function* outputEvents(
  id: string,
  session: ShellSession,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent, void, undefined> {
  const running = session.current;
  let offset = 0;
  while (running !== undefined) {
    const { isRunning, news } = running;
    const output = running.stdout.since(offset);
    offset = running.stdout.end;
    if (output !== "") yield { event: "output", data: { session_id: id, output, status: "running" } };
    if (!isRunning) break;
    await newsWithin(news, 15_000, signal);
    if (signal.aborted) return;
  }
  yield {
    event: "result",
    data: {
      session_id: id,
      command: running?.command ?? null,
      status: statusOf(session),
      exit_code: exitCodeOf(running),
    },
  };
}

function executed(
  id: string,
  session: ShellSession,
  running: RunningCommand,
  status: string,
  truncate: boolean,
): Remark | object {
  const all = running.stdout.since(0);
  const output = truncate && all.length > SHOWN_CHARACTERS ? shortened(all) : all;
  const data = {
    session_id: id,
    command: running.command,
    status,
    output,
    console: [consoleOf(running.command, output)],
    exit_code: exitCodeOf(running),
  };
  if (!session.isGone || running.isRunning) return data;
  return new Remark(data, "the command ended its shell", "the next command gets a new one");
}

function viewed(id: string, session: ShellSession): object {
  const { current } = session;
  const output = current?.stdout.since(0) ?? "";
  return {
    output,
    session_id: id,
    console: current === undefined ? [] : [consoleOf(current.command, output)],
    status: statusOf(session),
    command: current?.command ?? null,
    exit_code: exitCodeOf(current),
  };
}

function described(session: ShellSession): object {
  return {
    working_dir: session.workingDirectory,
    created_at: session.createdAt.toISOString(),
    last_used_at: session.lastUsedAt.toISOString(),
    age_seconds: (Date.now() - session.createdAt.getTime()) / 1000,
    status: session.isBusy ? "active" : "ready",
    current_command: session.isBusy ? (session.current?.command ?? null) : null,
  };
}

function consoleOf(command: string, output: string): object {
  return { ps1: "$ ", command, output };
}

function statusOf({ current }: ShellSession): string {
  if (current === undefined) return "completed";
  const { state } = current;
  if (state.kind === "running") return "running";
  if (state.kind === "lost" || state.killed) return "terminated";
  return state.end.timedOut ? "hard_timeout" : "completed";
}

function exitCodeOf(command: RunningCommand | undefined): number | null {
  return command?.state.kind === "ended" ? command.state.end.exitCode : null;
}

function shortened(text: string): string {
  const half = SHOWN_CHARACTERS / 2;
  const cut = text.length - SHOWN_CHARACTERS;
  return `${text.slice(0, half)}\n[... ${cut} characters left out ...]\n${text.slice(-half)}`;
}
