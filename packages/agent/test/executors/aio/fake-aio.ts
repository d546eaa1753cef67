import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { FakeCommand, HOME } from "./fake-commands.ts";

/** What AIO servers are known to do. */
export interface Awkwardness {
  /** Calls that this version does not have: "bash", "shell". */
  without?: readonly ("bash" | "shell")[];
  apiKey?: string;
  /** Sessions of a kind; the one that was not used for longest is dropped for a new one. */
  maxSessions?: number;
  /** A shell command that is silent for so long is answered with no_change_timeout, and goes on. */
  noChangeMs?: number;
  ignoresHardTimeout?: boolean;
  /** bash/output answers at once. */
  neverWaits?: boolean;
  /** Kept of each output. */
  outputCharacters?: number;
  /** Directories are not made for files. */
  noParents?: boolean;
}

/** Something that happens to the next request whose path begins like this. */
export interface Accident {
  readonly path: string;
  readonly what:
    | { readonly kind: "reset"; readonly when: "before" | "after" }
    | { readonly kind: "answer"; readonly status: number; readonly body: unknown; readonly when: "before" | "after" }
    | { readonly kind: "delay"; readonly ms: number }
    /** The session, and what runs in it, is gone before the request is looked at. */
    | { readonly kind: "evict" };
}

interface Session {
  readonly commands: Map<string, FakeCommand>;
  usedAt: number;
  corrupt: boolean;
}

type Body = Record<string, unknown>;

/** ErrorObservation is what AIO says when two commands met in a session. */
export const CORRUPT = {
  success: false,
  message: "'ErrorObservation' object has no attribute 'exit_code'",
  data: null,
  hint: null,
};

/** An AIO server in the shapes of its API, with a real bash behind it. */
export class FakeAio implements AsyncDisposable {
  readonly home: string = mkdtempSync(join(tmpdir(), "agentfense-fake-aio-"));
  readonly awkwardness: Awkwardness;
  /** "POST v1/bash/exec" and so on. */
  readonly requests: { readonly call: string; readonly body: Body }[] = [];
  readonly accidents: Accident[] = [];
  readonly sessions = { bash: new Map<string, Session>(), shell: new Map<string, Session>() };
  readonly #server: Server = createServer();
  #clock = 0;

  static async open(awkwardness: Awkwardness = {}): Promise<FakeAio> {
    const fake = new FakeAio(awkwardness);
    fake.#server.listen(0, "127.0.0.1");
    await once(fake.#server, "listening");
    return fake;
  }

  private constructor(awkwardness: Awkwardness) {
    this.awkwardness = awkwardness;
    this.#server.on("request", (request, response) => void this.#answer(request, response));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The bodies of a call. */
  bodiesOf(call: string): Body[] {
    return this.requests.filter((request) => request.call === call).map(({ body }) => body);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.sessions.bash.values(), ...this.sessions.shell.values()];
    const commands = all.flatMap((session) => [...session.commands.values()]);
    for (const command of commands) command.kill();
    await Promise.all(commands.map(({ done }) => done));
    this.#server.closeAllConnections();
    this.#server.close();
    rmSync(this.home, { recursive: true, force: true });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, "http://fake");
    const path = url.pathname.slice(1);
    const said = await text(request).catch(() => "");
    const body = (said === "" ? {} : JSON.parse(said)) as Body;
    this.requests.push({ call: `${request.method} ${path}`, body });
    const at = this.accidents.findIndex((accident) => path.startsWith(accident.path));
    const what = at === -1 ? undefined : this.accidents.splice(at, 1)[0]!.what;
    if (what?.kind === "delay") await sleep(what.ms, undefined, { ref: false });
    if (what?.kind === "evict") this.#evict(body);
    if (what?.kind === "reset" && what.when === "before") return void request.socket.destroy();
    const isInstead = what?.kind === "answer" && what.when === "before";
    const answer = isInstead ? what : await this.#carryOut(request, path, url.searchParams, body);
    if (what?.kind === "reset") return void request.socket.destroy();
    const { status, body: told } = what?.kind === "answer" ? what : answer;
    response.writeHead(status, {
      "content-type": told instanceof Buffer ? "application/octet-stream" : "application/json",
    });
    response.end(told instanceof Buffer ? told : JSON.stringify(told));
  }

  async #carryOut(
    request: IncomingMessage,
    path: string,
    query: URLSearchParams,
    body: Body,
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const { apiKey, without = [] } = this.awkwardness;
    if (apiKey !== undefined && request.headers["x-aio-api-key"] !== apiKey) {
      return { status: 401, body: { detail: "Invalid or missing API key" } };
    }
    const [, kind = "", ...rest] = path.split("/");
    if ((without as readonly string[]).includes(kind)) return { status: 404, body: { detail: "Not Found" } };
    if (path === "v1/sandbox") return { status: 200, body: this.#described() };
    if (path === "v1/file/write") return ok(...this.#write(body));
    if (path === "v1/file/download") return this.#download(query.get("path") ?? "");
    if (kind === "bash") return await this.#bash(rest, body);
    if (kind === "shell") return await this.#shell(request.method!, rest, body);
    if (path === "v1/code/execute") return await this.#code(body);
    return { status: 404, body: { detail: "Not Found" } };
  }

  #described(): object {
    const system = { os: "Linux", os_version: "22.04", arch: "x86_64", user: "gem", home_dir: HOME, timezone: "UTC" };
    return {
      ...envelope(null),
      home_dir: HOME,
      version: this.awkwardness.without?.includes("bash") === true ? "1.0.0.150" : "1.9.4",
      detail: { system: { ...system, occupied_ports: [] }, runtime: { python: [], nodejs: [] }, utils: [] },
    };
  }

  #onDisk(path: string): string {
    return join(this.home, path.startsWith(`${HOME}/`) ? path.slice(HOME.length) : `outside${path}`);
  }

  #write(body: Body): [unknown, boolean, string] {
    const path = String(body.file);
    const place = this.#onDisk(path);
    if (this.awkwardness.noParents === true && !existsSync(dirname(place))) {
      return [
        { path, operation: "write", message: "No such file or directory", error_type: "not_found" },
        false,
        "failed",
      ];
    }
    mkdirSync(dirname(place), { recursive: true });
    const content = Buffer.from(String(body.content), body.encoding === "base64" ? "base64" : "utf8");
    writeFileSync(place, content);
    return [{ file: path, bytes_written: content.byteLength }, true, "written"];
  }

  #download(path: string): { readonly status: number; readonly body: unknown } {
    const place = this.#onDisk(path);
    if (existsSync(place)) return { status: 200, body: readFileSync(place) };
    return { status: 404, body: { success: false, message: "File not found", data: null, hint: null } };
  }

  async #bash([call, id, close]: readonly string[], body: Body): Promise<{ status: number; body: unknown }> {
    const sessions = this.sessions.bash;
    if (call === "sessions" && id === "create") {
      this.#open(sessions, String(body.session_id));
      return ok({ session_id: body.session_id, status: "ready", working_dir: HOME, command_count: 0 });
    }
    if (call === "sessions" && close === "close") {
      this.#drop(sessions, id!);
      return ok({ session_id: id, status: "closed" });
    }
    if (typeof body.session_id !== "string") return invalid("session_id");
    const session = this.#find(sessions, body.session_id);
    if (session === undefined) return missing(body.session_id);
    if (call === "exec") {
      const commandId = randomUUID();
      const command = this.#start(body, body.env as Record<string, string>);
      session.commands.set(commandId, command);
      if (body.async_mode !== true) await command.done;
      const facts = { stdout: command.stdout, stderr: command.stderr, offset: 0, stderr_offset: 0 };
      return ok({ ...this.#bashFacts(commandId, command), ...facts, session_id: body.session_id });
    }
    if (call === "kill") {
      for (const command of session.commands.values()) command.kill();
      return ok(null);
    }
    const [commandId, command] = [...session.commands].find(([each]) => each === body.command_id) ?? [];
    if (commandId === undefined || command === undefined) return missing("command");
    const [offset, stderrOffset] = [Number(body.offset), Number(body.stderr_offset)];
    const isNew = () => command.stdout.length > offset || command.stderr.length > stderrOffset || !command.isRunning;
    const waits = body.wait === true && this.awkwardness.neverWaits !== true;
    if (waits && !isNew()) await Promise.race([command.news, sleep(Number(body.wait_timeout) * 1000)]);
    const facts = this.#bashFacts(commandId, command);
    return ok({
      session_id: body.session_id,
      stdout: this.#kept(command.stdout, offset),
      stderr: this.#kept(command.stderr, stderrOffset),
      offset: command.stdout.length,
      stderr_offset: command.stderr.length,
      command: facts,
    });
  }

  #bashFacts(id: string, command: FakeCommand): object {
    const { isRunning, killed, timedOut } = command;
    const status = isRunning ? "running" : timedOut ? "timed_out" : killed ? "killed" : "completed";
    return { command_id: id, command: command.command, status, exit_code: command.exitCode ?? null };
  }

  /** What a server with little room still has. */
  #kept(output: string, offset: number): string {
    const { outputCharacters = Number.POSITIVE_INFINITY } = this.awkwardness;
    return output.slice(Math.max(offset, output.length - outputCharacters));
  }

  async #shell(method: string, [call, id]: readonly string[], body: Body): Promise<{ status: number; body: unknown }> {
    const sessions = this.sessions.shell;
    if (call === "sessions" && method === "DELETE") {
      this.#drop(sessions, id!);
      return ok(null);
    }
    if (typeof body.id !== "string") return invalid("id");
    if (call === "sessions") {
      this.#open(sessions, body.id);
      return ok({ session_id: body.id, working_dir: HOME });
    }
    const session = this.#find(sessions, body.id);
    if (session === undefined) return missing(body.id);
    if (session.corrupt) return { status: 200, body: CORRUPT };
    const current = [...session.commands.values()].at(-1);
    if (call === "exec") {
      if (current?.isRunning === true) {
        session.corrupt = true;
        return { status: 200, body: CORRUPT };
      }
      const command = this.#start(body, {});
      session.commands.set(randomUUID(), command);
      return ok(this.#shellFacts(body.id, command, await this.#quiet(command, Number(body.timeout))));
    }
    if (call === "kill") {
      current?.kill();
      return ok({ status: "terminated", exit_code: 137, returncode: 137 });
    }
    if (call === "wait" && current !== undefined)
      await Promise.race([current.done, sleep(Number(body.seconds) * 1000)]);
    const facts = this.#shellFacts(body.id, current!, undefined);
    return ok(call === "wait" ? { status: facts.status } : facts);
  }

  /** Waits as a shell does. */
  async #quiet(command: FakeCommand, seconds: number): Promise<"no_change_timeout" | undefined> {
    const { noChangeMs = 120_000 } = this.awkwardness;
    const ended = await Promise.race([
      command.done.then(() => "done"),
      sleep(noChangeMs, "quiet", { ref: false }),
      sleep(seconds * 1000, "time", { ref: false }),
    ]);
    return ended === "quiet" ? "no_change_timeout" : undefined;
  }

  #shellFacts(id: string, command: FakeCommand, how: string | undefined) {
    const { isRunning, killed, timedOut, combined } = command;
    const status = how ?? (isRunning ? "running" : timedOut ? "hard_timeout" : killed ? "terminated" : "completed");
    const shown = combined.length > 30_000 ? combined.slice(0, 30_000) : combined;
    return { session_id: id, command: command.command, status, output: shown, exit_code: command.exitCode ?? null };
  }

  async #code(body: Body): Promise<{ status: number; body: unknown }> {
    writeFileSync(join(this.home, ".cell"), String(body.code));
    const program = body.language === "python" ? "python3 -" : "node -";
    const command = new FakeCommand(this.home, `${program} < ~/.cell`, { hardSeconds: Number(body.timeout) });
    await command.done;
    const { stdout, stderr, exitCode, timedOut } = command;
    const result = { output_type: "execute_result", data: { "text/plain": "42", "text/html": "<b>42</b>" } };
    const status = timedOut ? "timeout" : exitCode === 0 ? "ok" : "error";
    return ok({
      language: body.language,
      status,
      outputs: [result],
      code: body.code,
      stdout,
      stderr,
      exit_code: exitCode,
    });
  }

  #start(body: Body, env: Record<string, string>): FakeCommand {
    const hardSeconds = this.awkwardness.ignoresHardTimeout === true ? undefined : (body.hard_timeout as number);
    return new FakeCommand(this.home, String(body.command), { env, hardSeconds });
  }

  #find(sessions: Map<string, Session>, id: string): Session | undefined {
    const session = sessions.get(id);
    if (session !== undefined) session.usedAt = ++this.#clock;
    return session;
  }

  #open(sessions: Map<string, Session>, id: string): void {
    sessions.set(id, { commands: new Map(), usedAt: ++this.#clock, corrupt: false });
    const { maxSessions = 10 } = this.awkwardness;
    const [oldest] = [...sessions].sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (sessions.size > maxSessions) this.#drop(sessions, oldest![0]);
  }

  #drop(sessions: Map<string, Session>, id: string): void {
    for (const command of sessions.get(id)?.commands.values() ?? []) command.kill();
    sessions.delete(id);
  }

  #evict(body: Body): void {
    this.#drop(this.sessions.bash, String(body.session_id));
    this.#drop(this.sessions.shell, String(body.id));
  }
}

function envelope(data: unknown, success = true, message = "Operation successful"): object {
  return { success, message, data, hint: null };
}

function ok(data: unknown, success = true, message?: string): { readonly status: number; readonly body: unknown } {
  return { status: 200, body: envelope(data, success, message) };
}

function missing(id: string): { readonly status: number; readonly body: unknown } {
  return { status: 200, body: envelope(null, false, `Session not found: ${id}`) };
}

function invalid(field: string): { readonly status: number; readonly body: unknown } {
  return {
    status: 422,
    body: { detail: [{ loc: ["body", field], msg: "field required", type: "value_error.missing" }] },
  };
}
