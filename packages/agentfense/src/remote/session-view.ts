import { type Session, SessionSchema } from "@agentfense/protocol/sandbox";
import { printRecord, printTable } from "../table/table.ts";
import { jsonOf, printJson, showTime } from "./show.ts";
import { SESSION_STATES, wordFor } from "./words.ts";

export async function showSession(session: Session, json: boolean): Promise<void> {
  if (json) return printJson(jsonOf(SessionSchema, session));
  await printRecord([
    ["id", session.id],
    ["sandbox", session.sandboxId],
    ["status", wordFor(SESSION_STATES, session.status)],
    ["shell", session.shell],
    ["created", showTime(session.createdAt)],
    ["closed", showTime(session.closedAt)],
    ["reason", session.closeReason],
  ]);
}

export async function showSessions(sessions: readonly Session[], json: boolean): Promise<void> {
  if (json) return printJson(sessions.map((session) => jsonOf(SessionSchema, session)));
  await printTable(
    ["ID", "STATUS", "SHELL", "CREATED", "CLOSED", "REASON"],
    sessions.map((session) => [
      session.id,
      wordFor(SESSION_STATES, session.status),
      session.shell,
      showTime(session.createdAt),
      showTime(session.closedAt),
      session.closeReason,
    ]),
  );
}
