import { SNAPSHOT_COLUMNS } from "../columns.ts";
import type { SnapshotMetadata } from "../store.ts";
import type { Database } from "./database.ts";
import { Conditions, Table } from "./table.ts";

const SNAPSHOTS = new Table("snapshots", SNAPSHOT_COLUMNS);

export function snapshotMethods(database: Database): SnapshotMetadata {
  return {
    async insertSnapshot(record, maxPerOwner) {
      const { statement, values, place } = SNAPSHOTS.insertion(record);
      const room = `has_room('snapshots', ${place(record.ownerId)}, ${place(maxPerOwner)})`;
      return (await database.run(`${statement} WHERE ${room}`, values)) > 0;
    },
    snapshot: (id) => SNAPSHOTS.get(database, "WHERE id = $1", [id]),
    deleteSnapshot: async (id) => (await database.run("DELETE FROM snapshots WHERE id = $1", [id])) > 0,
    async listSnapshots({ ownerId, sandboxId, codebaseId }) {
      const conditions = new Conditions()
        .add("owner_id = ?", ownerId)
        .add("sandbox_id = ?", sandboxId)
        .add("codebase_id = ?", codebaseId);
      return await SNAPSHOTS.list(database, conditions, "created_at, id");
    },
  };
}
