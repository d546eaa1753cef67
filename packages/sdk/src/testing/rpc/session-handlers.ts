import { SessionStatus } from "@agentfense/protocol/common";
import type { SessionExecRequest, SessionSchema } from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Fault } from "../faults.ts";
import type { MockSession } from "../sandboxes/session.ts";
import type { World } from "../world.ts";
import { execOutputs, execResult } from "./exec-handlers.ts";
import { durationMs, required, timestampMessage } from "./fields.ts";
import type { SandboxHandlers } from "./sandbox-parts.ts";

export function sessionHandlers(
  world: World,
): SandboxHandlers<
  "createSession" | "getSession" | "listSessions" | "destroySession" | "sessionExec" | "sessionExecStream"
> {
  return {
    async createSession({ sandboxId, shell, env, workdir, idleTimeout }) {
      const sandbox = world.sandbox(sandboxId);
      const idleTimeoutMs = durationMs(idleTimeout, "idle_timeout");
      return sessionMessage(world.openSession(sandbox, { shell, env, workdir, idleTimeoutMs }));
    },

    async getSession({ sessionId }) {
      return sessionMessage(world.session(sessionId));
    },

    async listSessions({ sandboxId }) {
      try {
        return { sessions: world.sessionsOf(world.sandbox(sandboxId)).map(sessionMessage) };
      } catch (error) {
        // A sandbox that is gone has none, as it always was.
        if (error instanceof Fault && error.code === "SANDBOX_NOT_FOUND") return { sessions: [] };
        throw error;
      }
    },

    async destroySession({ sessionId }) {
      world.destroySession(world.session(sessionId));
      return {};
    },

    async sessionExec(request, signal) {
      const session = openSession(world, request);
      return await execResult(session.sandbox, session.exec(callOf(request, signal)));
    },

    async *sessionExecStream(request, signal) {
      yield* execOutputs(openSession(world, request).exec(callOf(request, signal)));
    },
  };
}

function openSession(world: World, { sessionId }: SessionExecRequest): MockSession {
  const session = world.session(sessionId);
  session.requireOpen();
  return session;
}

function callOf({ command, timeout }: SessionExecRequest, signal: AbortSignal) {
  return { command: required(command, "command"), timeoutMs: durationMs(timeout, "timeout"), signal };
}

function sessionMessage(session: MockSession): MessageInitShape<typeof SessionSchema> {
  return {
    id: session.id,
    sandboxId: session.sandbox.id,
    status: session.closeReason === "" ? SessionStatus.ACTIVE : SessionStatus.CLOSED,
    shell: session.shell,
    createdAt: timestampMessage(session.createdAtMs),
    closedAt: timestampMessage(session.closedAtMs),
    closeReason: session.closeReason,
  };
}
