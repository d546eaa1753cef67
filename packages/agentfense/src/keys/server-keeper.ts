import type { Key } from "@agentfense/protocol/system";
import type { Endpoint } from "@agentfense/sdk/engine";
import { explainingFailures } from "../remote/failure.ts";
import { connectTo } from "../remote/server.ts";
import { showTime } from "../remote/show.ts";
import { ROLES, wordFor } from "../remote/words.ts";
import type { KeyKeeper, KeyView } from "./keeper.ts";

/** The keys of a server, over its API. */
export function openServerKeeper(endpoint: Endpoint): KeyKeeper {
  const server = connectTo(endpoint);
  const asked = <T>(work: () => Promise<T>): Promise<T> => explainingFailures(server.url, work);
  return {
    create: ({ ownerId, role, name }) =>
      asked(async () => {
        const { key, secret } = await server.system.createKey({ ownerId, role: ROLES[role]!, name });
        return { key: view(key), secret };
      }),
    list: () => asked(async () => (await server.system.listKeys({})).keys.map(view)),
    revoke: (keyId) =>
      asked(async () => {
        await server.system.revokeKey({ keyId });
      }),
    async [Symbol.asyncDispose]() {
      server[Symbol.dispose]();
    },
  };
}

function view(key: Key | undefined): KeyView {
  return {
    id: key?.id ?? "",
    ownerId: key?.ownerId ?? "",
    role: wordFor(ROLES, key?.role ?? 0),
    name: key?.name ?? "",
    createdAt: showTime(key?.createdAt),
    revokedAt: showTime(key?.revokedAt),
    lastUsedAt: showTime(key?.lastUsedAt),
  };
}
