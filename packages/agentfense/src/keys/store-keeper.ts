import { type KeyRecord, openKeys, openSqliteStore, RuntimeError } from "@agentfense/server/runtime";
import { CommandFailure } from "../command.ts";
import type { KeyKeeper, KeyView } from "./keeper.ts";

/** The keys in the database of a configuration, whether a server runs on it or not. */
export async function openStoreKeeper(path: string): Promise<KeyKeeper> {
  const store = await openSqliteStore({ path }).catch((error: Error) => {
    throw new CommandFailure(`cannot open the database ${path}: ${error.message}`);
  });
  const keys = openKeys({ store });
  return {
    async create(request) {
      const { key, secret } = await explaining(keys.create(request));
      return { key: view(key), secret };
    },
    list: async () => (await keys.list()).map(view),
    revoke: (id) => explaining(keys.revoke(id)),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]().then(() => undefined),
  };
}

async function explaining<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof RuntimeError ? new CommandFailure(error.message) : error;
  }
}

function view(key: KeyRecord): KeyView {
  const { id, ownerId, role, name } = key;
  return {
    id,
    ownerId,
    role,
    name,
    createdAt: time(key.createdAtMs),
    revokedAt: time(key.revokedAtMs),
    lastUsedAt: time(key.lastUsedAtMs),
  };
}

function time(ms: number | undefined): string {
  return ms === undefined ? "" : new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
