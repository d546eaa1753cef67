import type { BoxSession, SessionEnd } from "../../isolation/session/api.ts";
import type { Caller } from "../caller.ts";
import { maySee, SERVER } from "../caller.ts";
import { checkSandboxId, checkSessionId } from "../ids.ts";
import { RuntimeError } from "../runtime-error.ts";
import type { SessionRecord } from "../store/store.ts";
import type { CreateSessionRequest, Sandboxes, SessionCall } from "./api.ts";
import type { Parts } from "./parts.ts";
import { sessionNotFound, translating } from "./refusals.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";
import { checkTerms, timeoutOf } from "./request.ts";

type SessionParts = Pick<
  Parts,
  "store" | "registry" | "commands" | "pausing" | "auditTrail" | "clock" | "defaults" | "log"
>;

interface LiveSession {
  readonly session: BoxSession;
  readonly registered: RegisteredSandbox;
  readonly caller: Caller;
  readonly record: SessionRecord;
  /** Instead of what the shell says, when we know better. */
  reason: string | undefined;
  /** Its end is in the store. */
  readonly stored: Promise<void>;
}

/** Why a session that its client did not close is no more, for a person. */
const REASONS: Readonly<Record<string, string>> = {
  exited: "its shell ended",
  killed: "its shell was killed because it did not come back from a command",
  hijacked: "a process of the sandbox took hold of the channel to its shell",
  idle: "nothing was asked of it for too long",
  stopped: "its sandbox was stopped",
  server_restarted: "the server was restarted",
};

type Calls = Pick<
  Sandboxes,
  ("createSession" | "getSession" | "listSessions" | "destroySession") | ("sessionExec" | "sessionExecStream")
>;

export type Sessions = ReturnType<typeof openSessions>;

/** The shells that stay. Those that run are here; all of them, with how they ended, are in the store. */
export function openSessions(parts: SessionParts) {
  const { registry, store, pausing, commands, auditTrail, clock, log } = parts;
  const { maxSessionsPerSandbox: maxPerSandbox } = parts.defaults;
  const sessions = new Map<string, LiveSession>();

  async function ended(live: LiveSession, end: SessionEnd): Promise<void> {
    const { record, registered } = live;
    const reason = live.reason ?? end.reason;
    const closedAtMs = clock();
    try {
      await store.closeSession(record.id, closedAtMs, reason);
    } catch (error) {
      log({ level: "error", message: "the end of a session could not be stored", sandboxId: registered.id, error });
    }
    sessions.delete(record.id);
    const caller = end.reason === "closed" ? live.caller : SERVER;
    auditTrail.tell("session_closed", registered, caller, { sessionId: record.id, data: { reason } });
    auditTrail.tell("session_duration", registered, caller, {
      sessionId: record.id,
      data: { duration_ms: Math.max(0, closedAtMs - record.createdAtMs) },
    });
  }

  /** One that its client closed is as unknown as one that never was. */
  const get: Sandboxes["getSession"] = async (caller, sessionId) => {
    registry.requireOpen();
    checkSessionId(sessionId);
    const record = await store.session(sessionId);
    if (record === undefined || !maySee(caller, record.ownerId) || record.closeReason === "closed") {
      throw sessionNotFound();
    }
    return record;
  };

  async function asked(caller: Caller, sessionId: string, call: SessionCall): Promise<LiveSession> {
    registry.requireOpen();
    checkTerms(call);
    checkSessionId(sessionId);
    const live = sessions.get(sessionId);
    if (live !== undefined && live.session.closed === undefined) {
      if (!maySee(caller, live.record.ownerId)) throw sessionNotFound();
      return live;
    }
    await live?.stored;
    const { closeReason } = await get(caller, sessionId);
    throw sessionClosed(closeReason);
  }

  const calls: Calls = {
    async createSession(caller, id, request, signal) {
      const registered = await registry.findReturned(caller, id);
      checkTerms(request);
      using entered = await pausing.enter(caller, registered);
      if (maxPerSandbox > 0 && registered.sessionCount >= maxPerSandbox) throw tooMany(maxPerSandbox);
      registered.sessionCount += 1;
      const release = (): void => {
        registered.sessionCount -= 1;
      };
      let session: BoxSession;
      try {
        session = await translating(entered.sandbox.session(sessionRequest(request), { signal }));
      } catch (error) {
        release();
        throw error;
      }
      void session.ended.then(release);
      const record: SessionRecord = {
        id: session.id,
        sandboxId: registered.id,
        ownerId: registered.record.ownerId,
        status: "ACTIVE",
        shell: session.shell,
        createdAtMs: clock(),
        closeReason: "",
      };
      try {
        await store.insertSession(record);
      } catch (error) {
        await session.close();
        registered.requirePresent(); // it may have been destroyed meanwhile
        throw error;
      }
      const stored = session.ended.then((end) => ended(live, end));
      const live: LiveSession = { session, registered, caller, record, reason: undefined, stored };
      sessions.set(record.id, live);
      auditTrail.tell("session_created", registered, caller, { sessionId: record.id, data: { shell: record.shell } });
      return record;
    },

    getSession: get,

    async listSessions(caller, id) {
      try {
        registry.find(caller, checkSandboxId(id));
      } catch (error) {
        if (error instanceof RuntimeError && error.code === "SANDBOX_NOT_FOUND") return [];
        throw error;
      }
      return (await store.listSessions(id)).filter(({ closeReason }) => closeReason !== "closed");
    },

    async destroySession(caller, sessionId) {
      await get(caller, sessionId);
      const live = sessions.get(sessionId);
      if (live === undefined) return; // it ended by itself
      await live.session.close();
      await live.stored;
    },

    sessionExec: (caller, sessionId, call) =>
      registry.ending(async () => {
        const { session, registered } = await asked(caller, sessionId, call);
        using _entered = await pausing.enter(caller, registered, { command: true });
        const work = session.exec({ command: call.command, ...timeoutOf(call.timeoutMs) }, call);
        const ended = commands.supervise({ registered, caller, command: call.command, sessionId }, work);
        return await ended.catch((error: unknown) => {
          throw closedWhileAsked(error, session);
        });
      }),

    async *sessionExecStream(caller, sessionId, call) {
      const { session, registered } = await asked(caller, sessionId, call);
      using _entered = await pausing.enter(caller, registered, { command: true });
      const events = session.execStream({ command: call.command, ...timeoutOf(call.timeoutMs) }, call);
      const command = { registered, caller, command: call.command, sessionId };
      try {
        yield* commands.superviseStream(command, events, () => session.closed !== undefined);
      } catch (error) {
        throw closedWhileAsked(error, session);
      }
    },
  };

  return {
    calls,
    /** The sandbox is about to end their shells, for this reason. Call what is returned when it has. */
    announceEnd(registered: RegisteredSandbox, reason: string): () => Promise<void> {
      const own = [...sessions.values()].filter((live) => live.registered === registered);
      for (const live of own) if (live.session.closed === undefined) live.reason = reason;
      return async () => {
        await Promise.all(own.map((live) => live.session.close().then(() => live.stored)));
      };
    },
  };
}

function sessionRequest({ shell, env, workdir, idleTimeoutMs }: CreateSessionRequest) {
  return {
    env,
    workdir,
    ...(shell === "" ? {} : { shell }),
    ...(idleTimeoutMs !== undefined && idleTimeoutMs > 0 ? { idleTimeoutMs } : {}),
  };
}

function tooMany(limit: number): RuntimeError {
  return new RuntimeError("LIMIT_EXCEEDED", `a sandbox has at most ${limit} sessions at a time`, {
    details: { limit: String(limit) },
    hint: "close one first",
  });
}

function sessionClosed(reason: string): RuntimeError {
  return new RuntimeError("SESSION_CLOSED", `session is closed: ${REASONS[reason] ?? "it ended"}`, {
    details: { reason },
    hint: "open a new session",
  });
}

/** Closed under a command that was waiting or running: as if it had been asked of the closed one. */
function closedWhileAsked(error: unknown, session: BoxSession): unknown {
  if (!(error instanceof RuntimeError) || error.code !== "SESSION_CLOSED") return error;
  const reason = session.closed?.reason ?? "closed";
  return reason === "closed" ? sessionNotFound() : sessionClosed(reason);
}
