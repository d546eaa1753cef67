import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { ExecutionOutcome } from "../../types.ts";
import { CollectedOutput } from "../collected-output.ts";
import { OUTPUT_BYTES } from "../executor.ts";
import { type AioApi, isSessionLost } from "./api.ts";
import type { FileStore } from "./file-store.ts";
import { AioConnectionError } from "./http.ts";
import { OneTimeScript } from "./one-time-script.ts";
import { hardTimeout, KILL_MS, LostExecution, type Run, type Runner } from "./runner.ts";
import { SessionPool } from "./session-pool.ts";

const WAIT_SECONDS = 20;
/** How often a question about a running command is asked again when the connection fails. */
const ASK_AGAIN = 3;

const status = z.enum(["pending", "running", "completed", "timed_out", "killed"]);
const begun = z.object({ command_id: z.string(), status, exit_code: z.number().nullish() });
const printed = z.object({
  stdout: z.string().nullish(),
  stderr: z.string().nullish(),
  offset: z.number().nullish(),
  stderr_offset: z.number().nullish(),
  command: z.object({ status, exit_code: z.number().nullish() }).nullish(),
});

interface Following {
  readonly session: string;
  readonly commandId: string;
  readonly stdout: Collected;
  readonly stderr: Collected;
}

interface End {
  readonly status: z.output<typeof status>;
  readonly exitCode: number | undefined;
}

/** By `/v1/bash/*`: one process per command, its outputs apart. */
export class BashRunner implements Runner {
  readonly name = "bash";
  readonly #api: AioApi;
  readonly #files: FileStore;
  readonly #workspace: string;
  readonly #sessions: SessionPool;

  constructor(parts: {
    readonly api: AioApi;
    readonly files: FileStore;
    readonly workspace: string;
    readonly sessions: { readonly prefix: string; readonly limit: number };
  }) {
    const { api, workspace } = parts;
    this.#api = api;
    this.#files = parts.files;
    this.#workspace = workspace;
    const create = async (id: string, signal: AbortSignal): Promise<void> => {
      await api.post("v1/bash/sessions/create", { session_id: id, exec_dir: workspace }, z.unknown(), { signal });
    };
    const close = async (id: string): Promise<void> => {
      await api.post(`v1/bash/sessions/${encodeURIComponent(id)}/close`, {}, z.unknown(), { timeoutMs: KILL_MS });
    };
    this.#sessions = new SessionPool({ create, close }, parts.sessions);
  }

  async run(run: Run): Promise<ExecutionOutcome> {
    const script = new OneTimeScript(this.#workspace, run.plan);
    await this.#files.write(script.files("removes itself"), this, run.signal);
    let isUnwrapped = false;
    try {
      const outcome = await this.#start(script, run);
      isUnwrapped = !outcome.timedOut;
      return outcome;
    } finally {
      // The script has removed it, unless it was never started or stopped too soon.
      if (!isUnwrapped) await this.line(script.removal, AbortSignal.timeout(KILL_MS)).catch(() => {});
    }
  }

  async line(line: string, signal: AbortSignal): Promise<number> {
    const session = await this.#sessions.take(signal);
    let isGood = false;
    try {
      const body = { command: line, session_id: session, hard_timeout: 30 };
      const { exit_code } = await this.#api.post("v1/bash/exec", body, begun, { signal, timeoutMs: 40_000 });
      isGood = true;
      return exit_code ?? -1;
    } finally {
      if (isGood) this.#sessions.giveBack(session);
      else await this.#sessions.discard(session);
    }
  }

  async close(): Promise<void> {
    await this.#sessions.close();
  }

  async #start(script: OneTimeScript, run: Run): Promise<ExecutionOutcome> {
    try {
      return await this.#inSession(script, run, { fresh: false });
    } catch (error) {
      run.signal.throwIfAborted();
      if (!isSessionLost(error)) throw error;
      // The script runs the code once at most, so nothing is lost by trying.
      return await this.#inSession(script, run, { fresh: true });
    }
  }

  async #inSession(script: OneTimeScript, run: Run, { fresh }: { readonly fresh: boolean }): Promise<ExecutionOutcome> {
    const session = await this.#sessions.take(run.signal, { fresh });
    let isGood = false;
    try {
      const startedAt = performance.now();
      const body = {
        command: script.command,
        session_id: session,
        exec_dir: this.#workspace,
        env: run.env,
        async_mode: true,
        hard_timeout: hardTimeout(run.timeoutMs),
        max_output_length: OUTPUT_BYTES,
      };
      const { command_id } = await this.#api.post("v1/bash/exec", body, begun, { signal: run.signal });
      const following = { session, commandId: command_id, stdout: new Collected(), stderr: new Collected() };
      const { end, timedOut } = await this.#follow(following, run, startedAt + run.timeoutMs);
      const { stdout, stderr } = following;
      if (script.isSecondStart(end.exitCode, stderr.text)) {
        throw new LostExecution("the code was begun, and the session that it ran in was lost");
      }
      isGood = end.status === "completed";
      const unknown = end.status === "completed" ? -1 : 137;
      return {
        stdout: stdout.text,
        stderr: stderr.text,
        exitCode: end.exitCode ?? unknown,
        timedOut: timedOut || end.status === "timed_out",
        outOfMemory: false,
        truncated: stdout.isTruncated || stderr.isTruncated,
        durationMs: performance.now() - startedAt,
      };
    } catch (error) {
      // Whatever runs in it must not go on.
      await this.#kill(session);
      throw error;
    } finally {
      if (isGood) this.#sessions.giveBack(session);
      else await this.#sessions.discard(session);
    }
  }

  async #follow(
    following: Following,
    { signal }: Run,
    endsAt: number,
  ): Promise<{ readonly end: End; readonly timedOut: boolean }> {
    for (;;) {
      const leftMs = endsAt - performance.now();
      if (leftMs <= 0) break;
      const end = await this.#ask(following, Math.min(leftMs, WAIT_SECONDS * 1000), signal);
      if (end !== undefined) return { end, timedOut: false };
    }
    await this.#kill(following.session);
    const killedBy = performance.now() + KILL_MS;
    while (performance.now() < killedBy) {
      const end = await this.#ask(following, 500, signal);
      if (end !== undefined) return { end, timedOut: true };
    }
    return { end: { status: "killed", exitCode: undefined }, timedOut: true };
  }

  /** Waits for news, and gives the end when that is the news. */
  async #ask(following: Following, waitMs: number, signal: AbortSignal): Promise<End | undefined> {
    const { stdout, stderr } = following;
    const askedAt = performance.now();
    const body = {
      session_id: following.session,
      command_id: following.commandId,
      offset: stdout.offset,
      stderr_offset: stderr.offset,
      wait: true,
      wait_timeout: Math.max(1, Math.floor(waitMs / 1000)),
    };
    // Not longer than we have: the server counts whole seconds.
    const news = await this.#askUntil(body, waitMs, signal);
    if (news === undefined) return undefined;
    const heard = [stdout.add(news.stdout, news.offset), stderr.add(news.stderr, news.stderr_offset)];
    const { command } = news;
    if (command != null && command.status !== "running" && command.status !== "pending") {
      return { status: command.status, exitCode: command.exit_code ?? undefined };
    }
    // There are servers that do not wait.
    if (!heard.includes(true) && performance.now() - askedAt < 50)
      await sleep(Math.min(100, waitMs), undefined, { signal });
    return undefined;
  }

  async #askUntil(body: object, waitMs: number, signal: AbortSignal): Promise<z.output<typeof printed> | undefined> {
    const time = AbortSignal.timeout(Math.max(1, Math.ceil(waitMs)));
    const either = AbortSignal.any([signal, time]);
    for (let failures = 0; ; ) {
      try {
        return await this.#api.post("v1/bash/output", body, printed, { signal: either, timeoutMs: waitMs + KILL_MS });
      } catch (error) {
        signal.throwIfAborted();
        if (time.aborted) return undefined;
        failures += 1;
        if (error instanceof AioConnectionError && failures < ASK_AGAIN) continue;
        throw new LostExecution("the code was begun, and the server does not tell how it went on", { cause: error });
      }
    }
  }

  async #kill(session: string): Promise<void> {
    const body = { session_id: session, signal: "SIGKILL" };
    // What cannot be killed ends by its hard_timeout.
    await this.#api.post("v1/bash/kill", body, z.unknown(), { timeoutMs: KILL_MS }).catch(() => {});
  }
}

/** One output as it is asked for, piece by piece. */
class Collected {
  offset = 0;
  readonly #output = new CollectedOutput();
  #hasGap = false;

  get text(): string {
    return this.#output.text;
  }

  get isTruncated(): boolean {
    return this.#output.isTruncated || this.#hasGap;
  }

  /** Whether there was anything. */
  add(text: string | null | undefined, offset: number | null | undefined): boolean {
    if (text === null || text === undefined || text === "") return false;
    const bytes = Buffer.from(text);
    const next = offset ?? this.offset + text.length;
    const isAfterGap = this.#hasGap;
    // Offsets may count bytes or characters. Either way there is a gap when less came than they say.
    this.#hasGap ||= bytes.byteLength < next - this.offset;
    this.offset = next;
    if (!isAfterGap) this.#output.add(bytes);
    return true;
  }
}
