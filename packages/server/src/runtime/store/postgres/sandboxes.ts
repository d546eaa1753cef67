import { SANDBOX_COLUMNS, SESSION_COLUMNS } from "../columns.ts";
import type { SandboxMetadata } from "../store.ts";
import type { Database } from "./database.ts";
import { Conditions, Table } from "./table.ts";

const SANDBOXES = new Table("sandboxes", SANDBOX_COLUMNS);
const SESSIONS = new Table("sessions", SESSION_COLUMNS);

const CLOSE = "UPDATE sessions SET status = 'CLOSED', closed_at = $1, close_reason = $2 WHERE status = 'ACTIVE'";

export function sandboxMethods(database: Database): SandboxMetadata {
  return {
    async insertSandbox(record, maxPerOwner) {
      const { statement, values, place } = SANDBOXES.insertion(record, { label_pairs: labelPairs(record.labels) });
      const room = `has_room('sandboxes', ${place(record.ownerId)}, ${place(maxPerOwner)})`;
      return (await database.run(`${statement} WHERE ${room}`, values)) > 0;
    },
    sandbox: (id) => SANDBOXES.get(database, "WHERE id = $1", [id]),
    updateSandbox: (id, changes) => SANDBOXES.update(database, id, changes),
    async deleteSandbox(id) {
      await database.run("DELETE FROM sandboxes WHERE id = $1", [id]);
    },
    async listSandboxes({ ownerId, codebaseId, status, labels = {}, after, limit }) {
      const wanted = labelPairs(labels);
      const conditions = new Conditions()
        .add("owner_id = ?", ownerId)
        .add("codebase_id = ?", codebaseId)
        .add("status = ?", status)
        .add("label_pairs @> ?::text[]", wanted.length === 0 ? undefined : wanted)
        .after(after);
      return await SANDBOXES.list(database, conditions, "created_at, id", limit);
    },

    insertSession: (record) => SESSIONS.insert(database, record),
    session: (id) => SESSIONS.get(database, "WHERE id = $1", [id]),
    closeSession: async (id, closedAtMs, reason) =>
      (await database.run(`${CLOSE} AND id = $3`, [closedAtMs, reason, id])) > 0,
    async closeAllSessions(closedAtMs, reason) {
      await database.run(CLOSE, [closedAtMs, reason]);
    },
    listSessions: (sandboxId) =>
      SESSIONS.list(database, new Conditions().add("sandbox_id = ?", sandboxId), "created_at, id"),
  };
}

function labelPairs(labels: Readonly<Record<string, string>>): string[] {
  return Object.entries(labels).map((pair) => JSON.stringify(pair));
}
