import { KEY_COLUMNS, SECRET_COLUMNS } from "../columns.ts";
import type { KeyMetadata, SecretMetadata } from "../store.ts";
import type { Database } from "./database.ts";
import { Conditions, Table } from "./table.ts";

const KEYS = new Table("keys", KEY_COLUMNS);
const SECRETS = new Table("secrets", SECRET_COLUMNS);

export function keyMethods(database: Database): KeyMetadata {
  return {
    insertKey: (record) => KEYS.insert(database, record),
    key: (id) => KEYS.get(database, "WHERE id = $1", [id]),
    listKeys: () => KEYS.list(database, new Conditions(), "created_at, id"),
    // The first revocation is the one that counts.
    revokeKey: async (id, revokedAtMs) =>
      (await database.run("UPDATE keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1", [id, revokedAtMs])) >
      0,
    async touchKey(id, lastUsedAtMs) {
      await database.run("UPDATE keys SET last_used_at = greatest(last_used_at, $2) WHERE id = $1", [id, lastUsedAtMs]);
    },
  };
}

export function secretMethods(database: Database): SecretMetadata {
  return {
    async putSecret(record, maxPerOwner) {
      const { statement, values, place } = SECRETS.insertion(record);
      const owner = place(record.ownerId);
      const isThere = `EXISTS (SELECT FROM secrets WHERE owner_id = ${owner} AND name = ${place(record.name)})`;
      const room = `has_room('secrets', ${owner}, ${place(maxPerOwner)})`;
      const replacing = `ON CONFLICT (owner_id, name) DO UPDATE SET hosts = excluded.hosts, place = excluded.place,
        sealed = excluded.sealed, updated_at = excluded.updated_at RETURNING ${SECRETS.selected}`;
      return (await SECRETS.ask(database, `${statement} WHERE ${isThere} OR ${room} ${replacing}`, values))[0];
    },
    secret: (ownerId, name) => SECRETS.get(database, "WHERE owner_id = $1 AND name = $2", [ownerId, name]),
    listSecrets: (ownerId) => SECRETS.list(database, new Conditions().add("owner_id = ?", ownerId), "owner_id, name"),
    deleteSecret: async (ownerId, name) =>
      (await database.run("DELETE FROM secrets WHERE owner_id = $1 AND name = $2", [ownerId, name])) > 0,
  };
}
