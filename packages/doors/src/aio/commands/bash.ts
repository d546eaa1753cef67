import { randomUUID } from "node:crypto";
import * as shape from "../../shape.ts";
import { Refusal, refusalOf } from "../envelope.ts";
import { workingDirectory } from "../paths.ts";
import { type AioCall, bare, post, type Route } from "../route.ts";
import { BashSession } from "./bash-session.ts";
import type { RunningCommand } from "./running-command.ts";
import { hardTimeoutMs, newsWithin, SECONDS, waitFor } from "./waiting.ts";

// One process per command; its two outputs apart, and an input that stays open.

const sessionId = shape.string().min(1).max(128);
const offset = shape.int().min(0).default(0);

const execInput = shape.object({
  command: shape.string().min(1),
  session_id: sessionId.optional(),
  exec_dir: shape.string().optional(),
  env: shape.record(shape.string()).optional(),
  async_mode: shape.boolean().default(false),
  timeout: SECONDS.optional(),
  hard_timeout: SECONDS.optional(),
  max_output_length: shape.int().min(0).default(50_000),
});

const outputInput = shape.object({
  session_id: sessionId,
  command_id: shape.string().optional(),
  offset,
  stderr_offset: offset,
  wait: shape.boolean().default(false),
  wait_timeout: SECONDS.default(30),
});

const SIGNALS = ["SIGTERM", "SIGINT", "SIGKILL", "SIGHUP", "SIGQUIT"] as const;

export const BASH_ROUTES: readonly Route[] = [
  post("v1/bash/exec", execInput, exec),
  post("v1/bash/output", outputInput, output),
  post(
    "v1/bash/write",
    shape.object({ session_id: sessionId, command_id: shape.string().optional(), input: shape.string() }),
    async ({ place }, { session_id, command_id, input }) => {
      const command = place.bashes.require(session_id).find(command_id);
      if (!command.isRunning) throw new Refusal("the command is over and reads no more input");
      if (await command.write(input)) return null;
      throw new Refusal("the command has not read what was sent before", { status: 409 });
    },
  ),
  post(
    "v1/bash/kill",
    shape.object({ session_id: sessionId, signal: shape.oneOf(SIGNALS).default("SIGTERM") }),
    async ({ place }, { session_id, signal }) => {
      await place.bashes.require(session_id).signal(signal);
      return null;
    },
  ),
  bare("GET", "v1/bash/sessions", async ({ place }) => ({
    sessions: place.bashes.all.map(([id, session]) => described(id, session)),
  })),
  post(
    "v1/bash/sessions/create",
    shape.object({
      session_id: sessionId.optional(),
      exec_dir: shape.string().optional(),
      snapshot_path: shape.string().optional(),
    }),
    async ({ place }, { session_id = randomUUID(), exec_dir }) => {
      const session = place.bashes.find(session_id) ?? (await open(place, session_id, exec_dir));
      return described(session_id, session);
    },
  ),
  bare("POST", "v1/bash/sessions/{session_id}/close", async ({ place, parameters }) => {
    const id = parameters.session_id!;
    const session = place.bashes.require(id);
    await place.bashes.remove(id);
    return { ...described(id, session), status: "closed" };
  }),
];

async function exec(call: AioCall, input: shape.Value<typeof execInput>): Promise<unknown> {
  const { place, sandbox, request } = call;
  const { session_id = randomUUID(), exec_dir, env, hard_timeout, timeout, max_output_length } = input;
  const session = place.bashes.find(session_id) ?? (await open(place, session_id, undefined));
  const running = await session.start(sandbox, {
    command: input.command,
    directory: exec_dir === undefined ? undefined : workingDirectory(exec_dir),
    env,
    timeoutMs: hardTimeoutMs(hard_timeout, call.options),
  });
  const timeMs = timeout === undefined ? {} : { timeMs: timeout * 1000 };
  if (!input.async_mode) await waitFor(running, { signal: request.signal, ...timeMs });
  const { state } = running;
  if (state.kind === "lost") throw refusalOf(state.error);
  const [stdout, stderr] = [running.stdout.since(0), running.stderr.since(0)];
  return {
    session_id,
    command_id: running.id,
    command: running.command,
    status: statusOf(running),
    stdout: stdout.slice(0, max_output_length),
    stderr: stderr.slice(0, max_output_length),
    exit_code: exitCodeOf(running),
    // From where `output` goes on.
    offset: running.stdout.end - Math.max(0, stdout.length - max_output_length),
    stderr_offset: running.stderr.end - Math.max(0, stderr.length - max_output_length),
  };
}

async function output({ place, request }: AioCall, input: shape.Value<typeof outputInput>): Promise<unknown> {
  const running = place.bashes.require(input.session_id).find(input.command_id);
  const hasNews = () => running.stdout.end > input.offset || running.stderr.end > input.stderr_offset;
  if (input.wait && !hasNews()) await newsWithin(running.news, input.wait_timeout * 1000, request.signal);
  // Looked at first: of a command that is over, all that it printed is told together with its end.
  const command = {
    command_id: running.id,
    command: running.command,
    status: statusOf(running),
    exit_code: exitCodeOf(running),
  };
  if (running.state.kind === "lost") throw refusalOf(running.state.error);
  return {
    session_id: input.session_id,
    stdout: running.stdout.since(input.offset),
    stderr: running.stderr.since(input.stderr_offset),
    offset: running.stdout.end,
    stderr_offset: running.stderr.end,
    command,
  };
}

async function open(place: AioCall["place"], id: string, directory: string | undefined): Promise<BashSession> {
  return await place.bashes.open(id, async () => new BashSession(workingDirectory(directory), place.outputs));
}

function described(id: string, session: BashSession): object {
  const [current] = session.running;
  return {
    session_id: id,
    status: "ready",
    working_dir: session.workingDirectory,
    created_at: session.createdAt.toISOString(),
    last_used_at: session.lastUsedAt.toISOString(),
    current_command: current?.command ?? null,
    command_count: session.count,
  };
}

function statusOf({ state }: RunningCommand): string {
  if (state.kind === "running") return "running";
  if (state.kind === "lost") return "killed";
  if (state.end.timedOut) return "timed_out";
  return state.end.signal === undefined ? "completed" : "killed";
}

function exitCodeOf({ state }: RunningCommand): number | null {
  return state.kind === "ended" ? state.end.exitCode : null;
}
