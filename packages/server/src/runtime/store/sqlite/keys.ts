import type { KeyMetadata, KeyRecord } from "../store.ts";
import type { Database } from "./database.ts";
import type { Immediate } from "./protocol.ts";

interface KeyRow {
  readonly id: string;
  readonly owner_id: string;
  readonly role: KeyRecord["role"];
  readonly name: string;
  readonly secret_hash: string;
  readonly created_at: number;
  readonly revoked_at: number | null;
  readonly last_used_at: number | null;
}

export function keyMethods(database: Database): Immediate<KeyMetadata> {
  return {
    insertKey(record) {
      database.insert("keys", {
        id: record.id,
        owner_id: record.ownerId,
        role: record.role,
        name: record.name,
        secret_hash: record.secretHash,
        created_at: record.createdAtMs,
        revoked_at: record.revokedAtMs ?? null,
        last_used_at: record.lastUsedAtMs ?? null,
      });
    },
    key(id) {
      const row = database.get<KeyRow>("SELECT * FROM keys WHERE id = ?", id);
      return row && toRecord(row);
    },
    listKeys: () => database.all<KeyRow>("SELECT * FROM keys ORDER BY created_at, id").map(toRecord),
    // The first revocation is the one that counts.
    revokeKey: (id, revokedAtMs) =>
      database.run("UPDATE keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?", revokedAtMs, id) > 0,
    touchKey(id, lastUsedAtMs) {
      database.run("UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?", lastUsedAtMs, id);
    },
  };
}

function toRecord(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    ownerId: row.owner_id,
    role: row.role,
    name: row.name,
    secretHash: row.secret_hash,
    createdAtMs: row.created_at,
    ...(row.revoked_at === null ? {} : { revokedAtMs: row.revoked_at }),
    ...(row.last_used_at === null ? {} : { lastUsedAtMs: row.last_used_at }),
  };
}
