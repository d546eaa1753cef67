import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { ExecutionOutcome } from "../../types.ts";
import { OUTPUT_BYTES } from "../executor.ts";
import { type AioApi, isSessionLost } from "./api.ts";
import type { FileStore } from "./file-store.ts";
import { OneTimeScript } from "./one-time-script.ts";
import { hardTimeout, KILL_MS, LostExecution, type Run, type Runner } from "./runner.ts";
import { SessionPool } from "./session-pool.ts";

const WAIT_SECONDS = 15;
const POLL_MS = 100;

const status = z.enum(["running", "completed", "no_change_timeout", "hard_timeout", "terminated"]);
const executed = z.object({ status, exit_code: z.number().nullish(), output: z.string().nullish() });
const waited = z.object({ status });

/** How a script ended; undefined where its session is lost, and only its files can tell. */
type ShellEnd = z.output<typeof executed> | undefined;

/**
 * By `/v1/shell/*`, which is all that older servers have: one output, and sessions that get lost. So the script writes both
 * outputs and the exit code into files, and those count.
 */
export class ShellRunner implements Runner {
  readonly name = "shell";
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
      await api.post("v1/shell/sessions/create", { id, exec_dir: workspace }, z.unknown(), { signal });
    };
    const close = (id: string): Promise<void> =>
      api.delete(`v1/shell/sessions/${encodeURIComponent(id)}`, { timeoutMs: KILL_MS });
    this.#sessions = new SessionPool({ create, close }, parts.sessions);
  }

  async run(run: Run): Promise<ExecutionOutcome> {
    const script = new OneTimeScript(this.#workspace, run.plan);
    try {
      await this.#files.write(script.files({ env: run.env }), this, run.signal);
      const startedAt = performance.now();
      const timedOut = await this.#start(script, run, startedAt + run.timeoutMs);
      return await this.#result(script, run, { timedOut, durationMs: performance.now() - startedAt });
    } finally {
      await this.line(script.removal, AbortSignal.timeout(KILL_MS)).catch(() => {});
    }
  }

  async line(line: string, signal: AbortSignal): Promise<number> {
    const attempt = async (fresh: boolean): Promise<number> => {
      const session = await this.#sessions.take(signal, { fresh });
      let isGood = false;
      try {
        const { exit_code, status: how } = await this.#exec(session, line, { seconds: 30, signal });
        isGood = how === "completed";
        return exit_code ?? -1;
      } finally {
        if (isGood) this.#sessions.giveBack(session);
        else await this.#sessions.discard(session);
      }
    };
    try {
      return await attempt(false);
    } catch (error) {
      signal.throwIfAborted();
      if (!isSessionLost(error)) throw error;
      return await attempt(true);
    }
  }

  async close(): Promise<void> {
    await this.#sessions.close();
  }

  /** Whether its time was up. */
  async #start(script: OneTimeScript, run: Run, endsAt: number): Promise<boolean> {
    for (const fresh of [false, true]) {
      const session = await this.#sessions.take(run.signal, { fresh });
      let isGood = false;
      try {
        const seconds = hardTimeout(run.timeoutMs);
        const end = await this.#untilEnd(session, script, { seconds, endsAt, signal: run.signal });
        if (end === undefined) continue;
        if (script.isSecondStart(end.exit_code, end.output ?? "")) return await this.#await(script, run, endsAt);
        if (end.status === "completed") isGood = true;
        else await this.#kill(session);
        return end.status !== "completed";
      } catch (error) {
        await this.#kill(session);
        throw error;
      } finally {
        if (isGood) this.#sessions.giveBack(session);
        else await this.#sessions.discard(session);
      }
    }
    return await this.#await(script, run, endsAt);
  }

  /** Runs the script; undefined when the session is lost. What is silent, or takes longer than a request, is waited for. */
  async #untilEnd(
    session: string,
    script: OneTimeScript,
    { seconds, endsAt, signal }: { readonly seconds: number; readonly endsAt: number; readonly signal: AbortSignal },
  ): Promise<ShellEnd> {
    const time = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, Math.ceil(endsAt - performance.now())))]);
    try {
      let end = await this.#exec(session, script.command, { seconds, signal: time });
      while (isUnderWay(end.status)) {
        const left = Math.min(WAIT_SECONDS, (endsAt - performance.now()) / 1000);
        const body = { id: session, seconds: Math.max(1, Math.floor(left)) };
        const askedAt = performance.now();
        await this.#api.post("v1/shell/wait", body, waited, { signal: time });
        end = await this.#api.post("v1/shell/view", { id: session }, executed, { signal: time });
        if (isUnderWay(end.status) && performance.now() - askedAt < POLL_MS)
          await sleep(POLL_MS, undefined, { signal: time });
      }
      return end;
    } catch (error) {
      signal.throwIfAborted();
      if (time.aborted) return { status: "hard_timeout" };
      if (isSessionLost(error)) return undefined;
      throw error;
    }
  }

  /** The code was begun in a session that is lost. Its files tell when it is over. Gives whether the time was up first. */
  async #await(script: OneTimeScript, { signal }: Run, endsAt: number): Promise<boolean> {
    while (performance.now() < endsAt) {
      if ((await this.#read(script, "code", 16, signal)) !== undefined) return false;
      await sleep(Math.min(500, Math.max(1, endsAt - performance.now())), undefined, { signal });
    }
    throw new LostExecution("the code was begun, and the session that it ran in was lost before it ended");
  }

  async #result(
    script: OneTimeScript,
    { signal }: Run,
    facts: Pick<ExecutionOutcome, "timedOut" | "durationMs">,
  ): Promise<ExecutionOutcome> {
    const code = Number.parseInt((await this.#read(script, "code", 16, signal))?.text ?? "", 10);
    const stdout = await this.#read(script, "out", OUTPUT_BYTES, signal);
    const stderr = await this.#read(script, "err", OUTPUT_BYTES, signal);
    if (stdout === undefined && !facts.timedOut) throw new LostExecution("what the code printed is not to be had");
    return {
      ...facts,
      stdout: stdout?.text ?? "",
      stderr: stderr?.text ?? "",
      exitCode: Number.isNaN(code) ? (facts.timedOut ? 137 : -1) : code,
      outOfMemory: false,
      truncated: stdout?.isCut === true || stderr?.isCut === true,
    };
  }

  async #read(
    { directory }: OneTimeScript,
    name: string,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<{ readonly text: string; readonly isCut: boolean } | undefined> {
    const file = await this.#files.read(`${directory}/${name}`, maxBytes, signal);
    if (file === undefined) return undefined;
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(file.bytes, { stream: file.isCut });
    return { text, isCut: file.isCut };
  }

  async #exec(
    session: string,
    command: string,
    { seconds, signal }: { readonly seconds: number; readonly signal: AbortSignal },
  ): Promise<z.output<typeof executed>> {
    const body = {
      command,
      id: session,
      exec_dir: this.#workspace,
      async_mode: false,
      timeout: WAIT_SECONDS,
      hard_timeout: seconds,
    };
    return await this.#api.post("v1/shell/exec", body, executed, { signal, timeoutMs: (WAIT_SECONDS + 30) * 1000 });
  }

  async #kill(session: string): Promise<void> {
    await this.#api.post("v1/shell/kill", { id: session }, z.unknown(), { timeoutMs: KILL_MS }).catch(() => {});
  }
}

function isUnderWay(how: z.output<typeof status>): boolean {
  return how === "running" || how === "no_change_timeout";
}
