import type { SandboxMetadata, SessionRecord } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";

interface SessionRow {
  readonly id: string;
  readonly sandbox_id: string;
  readonly owner_id: string;
  readonly status: SessionRecord["status"];
  readonly shell: string;
  readonly created_at: number;
  readonly closed_at: number | null;
  readonly close_reason: string;
}

type Methods = "insertSession" | "session" | "closeSession" | "closeAllSessions" | "listSessions";

export function sessionMethods(database: Database): Immediate<Pick<SandboxMetadata, Methods>> {
  return {
    insertSession(record) {
      database.insert("sessions", {
        id: record.id,
        sandbox_id: record.sandboxId,
        owner_id: record.ownerId,
        status: record.status,
        shell: record.shell,
        created_at: record.createdAtMs,
        closed_at: record.closedAtMs ?? null,
        close_reason: record.closeReason,
      });
    },
    session(id) {
      const row = database.get<SessionRow>("SELECT * FROM sessions WHERE id = ?", id);
      return row && toRecord(row);
    },
    closeSession: (id, closedAtMs, reason) =>
      database.run(
        `UPDATE sessions SET status = 'CLOSED', closed_at = ?, close_reason = ? WHERE id = ? AND status = 'ACTIVE'`,
        closedAtMs,
        reason,
        id,
      ) > 0,
    closeAllSessions(closedAtMs, reason) {
      database.run(
        `UPDATE sessions SET status = 'CLOSED', closed_at = ?, close_reason = ? WHERE status = 'ACTIVE'`,
        closedAtMs,
        reason,
      );
    },
    listSessions: (sandboxId) =>
      database
        .all<SessionRow>("SELECT * FROM sessions WHERE sandbox_id = ? ORDER BY created_at, id", sandboxId)
        .map(toRecord),
  };
}

function toRecord(row: SessionRow): SessionRecord {
  return {
    id: row.id,
    sandboxId: row.sandbox_id,
    ownerId: row.owner_id,
    status: row.status,
    shell: row.shell,
    createdAtMs: row.created_at,
    ...(row.closed_at === null ? {} : { closedAtMs: row.closed_at }),
    closeReason: row.close_reason,
  };
}
