import { SANDBOX_COLUMNS } from "../columns.ts";
import type { SandboxMetadata, SandboxRecord } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";
import { afterKey, type Filter, matching, Table } from "./table.ts";

const SANDBOXES = new Table("sandboxes", SANDBOX_COLUMNS);

type Methods = "insertSandbox" | "sandbox" | "updateSandbox" | "deleteSandbox" | "listSandboxes";

export function sandboxMethods(database: Database): Immediate<Pick<SandboxMetadata, Methods>> {
  const find = (id: string): SandboxRecord | undefined => SANDBOXES.get(database, "WHERE id = ?", id);
  return {
    insertSandbox: (record, maxPerOwner) =>
      database.write(() => {
        const has = database.get<{ count: number }>(
          "SELECT count(*) AS count FROM sandboxes WHERE owner_id = ?",
          record.ownerId,
        );
        if (maxPerOwner > 0 && (has?.count ?? 0) >= maxPerOwner) return false;
        SANDBOXES.insert(database, record);
        return true;
      }),
    sandbox: find,
    updateSandbox: (id, changes) =>
      database.write(() => {
        SANDBOXES.update(database, id, changes);
        return find(id);
      }),
    deleteSandbox(id) {
      database.run("DELETE FROM sandboxes WHERE id = ?", id);
    },
    listSandboxes({ ownerId, codebaseId, status, labels = {}, after, limit = -1 }) {
      const filters: Filter[] = [
        ...matching("owner_id", ownerId),
        ...matching("codebase_id", codebaseId),
        ...matching("status", status),
        ...(Object.keys(labels).length === 0 ? [] : [[HAS_LABELS, { labels: JSON.stringify(labels) }] as const]),
        ...afterKey(after),
      ];
      return SANDBOXES.list(database, filters, "created_at, id", limit);
    },
  };
}

/** Every label that is asked for must be there; one parameter holds them all, whatever their number. */
const HAS_LABELS = `NOT EXISTS (
  SELECT 1 FROM json_each(:labels) AS wanted WHERE NOT EXISTS (
    SELECT 1 FROM json_each(sandboxes.labels) AS has WHERE has.key = wanted.key AND has.value = wanted.value))`;
