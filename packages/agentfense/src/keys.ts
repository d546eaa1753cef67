import type { ApiKey, CreateKeyRequest } from "@agentfense/sdk";
import type { StoreSettings } from "@agentfense/server/runtime";
import { CommandFailure, UsageError } from "./command-failure.ts";
import { showTime } from "./wording.ts";

/** A key as people see it; what is empty does not apply. */
type KeyView = Readonly<Record<"id" | "ownerId" | "role" | "name" | "createdAt" | "revokedAt" | "lastUsedAt", string>>;

type NewKey = { readonly [Member in keyof CreateKeyRequest]-?: NonNullable<CreateKeyRequest[Member]> };

/** Who has the keys: a server, or the database itself. */
interface Keeper {
  create(request: NewKey): Promise<{
    readonly key: KeyView;
    readonly secret: string;
  }>;
  list(): Promise<readonly KeyView[]>;
  revoke(id: string): Promise<void>;
}

interface KeeperValues {
  readonly config?: string | undefined;
  readonly set?: readonly string[] | undefined;
  readonly endpoint?: string | undefined;
  readonly "api-key"?: string | undefined;
  readonly ca?: string | undefined;
}

/** Works with the keys that are asked for. Each side loads only what it needs: an endpoint no store, a database no network. */
export async function withKeeper(values: KeeperValues, work: (keeper: Keeper) => Promise<void>): Promise<void> {
  const { config, set, endpoint } = values;
  const isLocal = config !== undefined || set !== undefined;
  if (isLocal && endpoint !== undefined) throw new UsageError("give --config or --endpoint, not both");
  if (isLocal || !(endpoint !== undefined || process.env.AGENTFENSE_ENDPOINT)) {
    const { readConfiguration } = await import("./serve/configuration.ts");
    return await withStore((await readConfiguration({ config, set }, process.env)).config.storage, work);
  }
  const { withClient } = await import("./remote/client.ts");
  await withClient(values, { jsonForm: "own" }, async ({ client }) => {
    await work({
      async create(request) {
        const { key, secret } = await client.createKey(request);
        return { key: viewOf(key), secret };
      },
      list: async () => (await client.listKeys()).map(viewOf),
      revoke: (id) => client.revokeKey(id),
    });
    return 0;
  });
}

/** In the database of a configuration, whether a server runs on it or not. */
async function withStore(storage: StoreSettings, work: (keeper: Keeper) => Promise<void>): Promise<void> {
  const { openKeys, openStore, RuntimeError } = await import("@agentfense/server/runtime");
  await using store = await openStore(storage).catch((error: Error & { readonly hint?: string }) => {
    throw new CommandFailure(error.message, { hint: error.hint });
  });
  const keys = openKeys({ store });
  const dateOf = (ms: number | undefined): Date | undefined => (ms === undefined ? undefined : new Date(ms));
  const view = (key: Awaited<ReturnType<typeof keys.list>>[number]): KeyView =>
    viewOf({
      ...key,
      createdAt: new Date(key.createdAtMs),
      revokedAt: dateOf(key.revokedAtMs),
      lastUsedAt: dateOf(key.lastUsedAtMs),
    });
  try {
    await work({
      async create(request) {
        const { key, secret } = await keys.create(request);
        return { key: view(key), secret };
      },
      list: async () => (await keys.list()).map(view),
      revoke: (id) => keys.revoke(id),
    });
  } catch (error) {
    throw error instanceof RuntimeError ? new CommandFailure(error.message) : error;
  }
}

type Key = Omit<ApiKey, "revokedAt" | "lastUsedAt"> & Readonly<Record<"revokedAt" | "lastUsedAt", Date | undefined>>;

function viewOf({ id, ownerId, role, name, createdAt, revokedAt, lastUsedAt }: ApiKey | Key): KeyView {
  const times = { createdAt: showTime(createdAt), revokedAt: showTime(revokedAt), lastUsedAt: showTime(lastUsedAt) };
  return { id, ownerId, role, name, ...times };
}
