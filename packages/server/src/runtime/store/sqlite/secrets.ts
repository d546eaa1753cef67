import { SECRET_COLUMNS } from "../columns.ts";
import type { SecretMetadata, SecretRecord } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";
import { matching, Table } from "./table.ts";

const SECRETS = new Table("secrets", SECRET_COLUMNS);

export function secretMethods(database: Database): Immediate<SecretMetadata> {
  const find = (ownerId: string, name: string): SecretRecord | undefined =>
    SECRETS.get(database, "WHERE owner_id = ? AND name = ?", ownerId, name);
  const remove = (ownerId: string, name: string): boolean =>
    database.run("DELETE FROM secrets WHERE owner_id = ? AND name = ?", ownerId, name) > 0;
  return {
    putSecret: (record, maxPerOwner) =>
      database.write(() => {
        const { ownerId, name } = record;
        const before = find(ownerId, name);
        const sql = "SELECT count(*) AS count FROM secrets WHERE owner_id = ?";
        const { count = 0 } = database.get<{ count: number }>(sql, ownerId) ?? {};
        if (before === undefined && maxPerOwner > 0 && count >= maxPerOwner) return undefined;
        remove(ownerId, name);
        SECRETS.insert(database, { ...record, createdAtMs: before?.createdAtMs ?? record.createdAtMs });
        return find(ownerId, name);
      }),
    secret: find,
    listSecrets: (ownerId) => SECRETS.list(database, matching("owner_id", ownerId), "owner_id, name", -1),
    deleteSecret: remove,
  };
}
