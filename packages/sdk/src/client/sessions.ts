import { SandboxService } from "@agentfense/protocol/sandbox";
import type { CallOptions } from "../model/options.ts";
import type { CommandEvent, RunResult, SessionInfo } from "../model/records.ts";
import type { CreateSessionOptions, SessionExecOptions, SessionStreamOptions } from "../model/requests.ts";
import type { CallStream } from "./call-stream.ts";
import { sessionOf } from "./messages/sandbox.ts";
import { durationOf } from "./messages/time.ts";
import type { Rpc } from "./rpc.ts";
import { commandEvents, patienceFor, resultOf } from "./running.ts";

const { method } = SandboxService;

export class SessionCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  async create(sandboxId: string, options: CreateSessionOptions = {}): Promise<SessionInfo> {
    const { shell = "", env, workdir = "", idleTimeoutMs, signal } = options;
    const request = {
      sandboxId,
      shell,
      env: { ...env },
      workdir,
      ...(idleTimeoutMs === undefined ? {} : { idleTimeout: durationOf(idleTimeoutMs, "idleTimeoutMs") }),
    };
    return sessionOf(await this.#rpc.unary(method.createSession, request, { signal }));
  }

  async get(sessionId: string, options?: CallOptions): Promise<SessionInfo> {
    return sessionOf(await this.#rpc.unary(method.getSession, { sessionId }, options));
  }

  async list(sandboxId: string, options?: CallOptions): Promise<SessionInfo[]> {
    const { sessions } = await this.#rpc.unary(method.listSessions, { sandboxId }, options);
    return sessions.map(sessionOf);
  }

  async destroy(sessionId: string, options?: CallOptions): Promise<void> {
    await this.#rpc.unary(method.destroySession, { sessionId }, options);
  }

  async exec(sessionId: string, command: string, options: SessionExecOptions = {}): Promise<RunResult> {
    const { signal, timeoutMs } = options;
    const request = sessionExecMessage(sessionId, command, timeoutMs);
    const call = this.#rpc.unary(method.sessionExec, request, { signal, timeoutMs: patienceFor(timeoutMs) });
    return await resultOf(call, command, options);
  }

  execStream(
    sessionId: string,
    command: string,
    { signal, timeoutMs }: SessionStreamOptions = {},
  ): CallStream<CommandEvent> {
    const request = sessionExecMessage(sessionId, command, timeoutMs);
    const options = { signal, timeoutMs: patienceFor(timeoutMs) };
    return commandEvents(this.#rpc.serverStream(method.sessionExecStream, request, options), command);
  }
}

function sessionExecMessage(sessionId: string, command: string, timeoutMs: number | undefined) {
  return { sessionId, command, ...(timeoutMs === undefined ? {} : { timeout: durationOf(timeoutMs, "timeoutMs") }) };
}
