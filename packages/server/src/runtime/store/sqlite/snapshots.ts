import { SNAPSHOT_COLUMNS } from "../columns.ts";
import type { SnapshotMetadata } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";
import { matching, Table } from "./table.ts";

const SNAPSHOTS = new Table("snapshots", SNAPSHOT_COLUMNS);

export function snapshotMethods(database: Database): Immediate<SnapshotMetadata> {
  return {
    insertSnapshot: (record, maxPerOwner) =>
      database.write(() => {
        const sql = "SELECT count(*) AS count FROM snapshots WHERE owner_id = ?";
        const { count = 0 } = database.get<{ count: number }>(sql, record.ownerId) ?? {};
        if (maxPerOwner > 0 && count >= maxPerOwner) return false;
        SNAPSHOTS.insert(database, record);
        return true;
      }),
    snapshot: (id) => SNAPSHOTS.get(database, "WHERE id = ?", id),
    deleteSnapshot: (id) => database.run("DELETE FROM snapshots WHERE id = ?", id) > 0,
    listSnapshots: ({ ownerId, sandboxId, codebaseId }) => {
      const filters = [
        ...matching("owner_id", ownerId),
        ...matching("sandbox_id", sandboxId),
        ...matching("codebase_id", codebaseId),
      ];
      return SNAPSHOTS.list(database, filters, "created_at, id", -1);
    },
  };
}
