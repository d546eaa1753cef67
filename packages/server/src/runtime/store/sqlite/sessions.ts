import { SESSION_COLUMNS } from "../columns.ts";
import type { SandboxMetadata } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";
import { Table } from "./table.ts";

const SESSIONS = new Table("sessions", SESSION_COLUMNS);

type Methods = "insertSession" | "session" | "closeSession" | "closeAllSessions" | "listSessions";

export function sessionMethods(database: Database): Immediate<Pick<SandboxMetadata, Methods>> {
  const close = "UPDATE sessions SET status = 'CLOSED', closed_at = ?, close_reason = ? WHERE status = 'ACTIVE'";
  return {
    insertSession: (record) => SESSIONS.insert(database, record),
    session: (id) => SESSIONS.get(database, "WHERE id = ?", id),
    closeSession: (id, closedAtMs, reason) => database.run(`${close} AND id = ?`, closedAtMs, reason, id) > 0,
    closeAllSessions(closedAtMs, reason) {
      database.run(close, closedAtMs, reason);
    },
    listSessions: (sandboxId) => SESSIONS.all(database, "WHERE sandbox_id = ? ORDER BY created_at, id", sandboxId),
  };
}
