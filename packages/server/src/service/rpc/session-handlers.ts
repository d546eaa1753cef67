import type { SessionExecRequest } from "@agentfense/protocol/sandbox";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import { execOutputs, execResult } from "./exec-handlers.ts";
import { given, required } from "./messages/fields.ts";
import { sessionMessage } from "./messages/sandbox.ts";
import { durationMs } from "./messages/time.ts";
import type { MessageLimits, SandboxHandlers } from "./sandbox-parts.ts";

export function sessionHandlers(
  sandboxes: Sandboxes,
  limits: MessageLimits,
): SandboxHandlers<
  "createSession" | "getSession" | "listSessions" | "destroySession" | "sessionExec" | "sessionExecStream"
> {
  return {
    async createSession({ sandboxId, shell, env, workdir, idleTimeout }, { caller, signal }) {
      required(sandboxId, "sandbox_id");
      const request = { shell, env, workdir, ...given({ idleTimeoutMs: durationMs(idleTimeout, "idle_timeout") }) };
      return sessionMessage(await sandboxes.createSession(caller, sandboxId, request, signal));
    },

    async getSession({ sessionId }, { caller }) {
      return sessionMessage(await sandboxes.getSession(caller, required(sessionId, "session_id")));
    },

    async listSessions({ sandboxId }, { caller }) {
      const sessions = await sandboxes.listSessions(caller, required(sandboxId, "sandbox_id"));
      return { sessions: sessions.map(sessionMessage) };
    },

    async destroySession({ sessionId }, { caller }) {
      await sandboxes.destroySession(caller, required(sessionId, "session_id"));
      return {};
    },

    async sessionExec(request, call) {
      const id = required(request.sessionId, "session_id");
      return execResult(
        await sandboxes.sessionExec(call.caller, id, sessionCallOf(request, call.signal)),
        call,
        limits,
      );
    },

    async *sessionExecStream(request, { caller, signal }) {
      const id = required(request.sessionId, "session_id");
      yield* execOutputs(sandboxes.sessionExecStream(caller, id, sessionCallOf(request, signal)), limits);
    },
  };
}

function sessionCallOf({ command, timeout }: SessionExecRequest, signal: AbortSignal) {
  return {
    command: required(command, "command"),
    signal,
    ...given({ timeoutMs: durationMs(timeout, "timeout") }),
  };
}
