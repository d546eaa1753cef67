import { KeySchema, SystemService } from "@agentfense/protocol/system";
import { ROLES, RUNTIMES } from "@agentfense/protocol/words";
import type { DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import type { Caller } from "../../runtime/caller.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import type { KeyRecord } from "../../runtime/store/store.ts";
import type { Handlers } from "./handlers.ts";
import { messageOf, required, wordFor } from "./messages/fields.ts";
import type { ServiceRuntime } from "./register.ts";

export function systemHandlers({
  keys,
  audit,
  info,
}: Pick<ServiceRuntime, "keys" | "audit" | "info">): Handlers<typeof SystemService> {
  return {
    async getServerInfo(_request, { caller }) {
      return {
        version: info.version,
        runtimes: info.runtimes.map((name) => RUNTIMES[name]),
        degradations: [...info.degradations()],
        keysRequired: info.keysRequired,
        ownerId: caller.ownerId ?? "",
        role: ROLES[caller.role],
      };
    },

    async createKey({ ownerId, role: roleNumber, name }, { caller }) {
      const role = wordFor(ROLES, roleNumber, "role") ?? "user";
      // An administrator is of no owner in particular.
      if (role !== "admin") required(ownerId, "owner_id");
      const { key, secret } = await keys.create({ ownerId, role, name });
      audit.record({
        type: "key_created",
        ownerId: key.ownerId,
        keyId: caller.keyId,
        data: { key_id: key.id, role: key.role, name: key.name },
      });
      return { key: keyMessage(key), secret };
    },

    listKeys: async () => ({ keys: (await keys.list()).map(keyMessage) }),

    async revokeKey({ keyId }, { caller }) {
      await keys.revoke(keyId);
      audit.record({ type: "key_revoked", keyId: caller.keyId, data: { key_id: keyId } });
    },
  };
}

/** What is about keys is an administrator's. */
export function admitToSystem({ role }: Caller, method: DescMethod): void {
  if (role === "admin" || method === SystemService.method.getServerInfo) return;
  throw new RuntimeError("ROLE_FORBIDS", "only an administrator may manage keys", { details: { role } });
}

/** Without the hash of the secret. */
function keyMessage(record: KeyRecord): MessageInitShape<typeof KeySchema> {
  return messageOf(KeySchema, record, { role: ROLES[record.role] });
}
