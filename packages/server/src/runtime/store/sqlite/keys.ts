import { KEY_COLUMNS } from "../columns.ts";
import type { KeyMetadata } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";
import { Table } from "./table.ts";

const KEYS = new Table("keys", KEY_COLUMNS);

export function keyMethods(database: Database): Immediate<KeyMetadata> {
  return {
    insertKey: (record) => KEYS.insert(database, record),
    key: (id) => KEYS.get(database, "WHERE id = ?", id),
    listKeys: () => KEYS.all(database, "ORDER BY created_at, id"),
    // The first revocation is the one that counts.
    revokeKey: (id, revokedAtMs) =>
      database.run("UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?", revokedAtMs, id) > 0,
    touchKey(id, lastUsedAtMs) {
      database.run("UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?", lastUsedAtMs, id);
    },
  };
}
