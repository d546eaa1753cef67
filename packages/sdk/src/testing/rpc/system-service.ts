import { RuntimeType } from "@agentfense/protocol/sandbox";
import type { KeySchema, SystemService } from "@agentfense/protocol/system";
import { Role } from "@agentfense/protocol/system";
import { ROLES } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { KeyRecord } from "../keys.ts";
import type { World } from "../world.ts";
import { required, timestampMessage, wordFor } from "./fields.ts";
import type { Handlers } from "./handlers.ts";

/** Whoever asks is an administrator: the mock has no keys in force. */
export function systemHandlers({ keys, audit }: World): Handlers<typeof SystemService> {
  return {
    async getServerInfo() {
      return {
        version: "0.3.0",
        runtimes: [RuntimeType.MOCK],
        degradations: ["the mock engine runs no processes and enforces no limits but disk, output and time"],
        keysRequired: false,
        ownerId: "",
        role: Role.ADMIN,
      };
    },

    async createKey({ ownerId, role: number, name }) {
      const role = wordFor(ROLES, number, "role") ?? "user";
      if (role !== "admin") required(ownerId, "owner_id");
      const { key, secret } = keys.create({ ownerId, role, name });
      audit.record({ type: "key_created", ownerId, data: { key_id: key.id, role, name } });
      return { key: keyMessage(key), secret };
    },

    async listKeys() {
      return { keys: keys.list().map(keyMessage) };
    },

    async revokeKey({ keyId }) {
      keys.revoke(required(keyId, "key_id"));
      audit.record({ type: "key_revoked", data: { key_id: keyId } });
      return {};
    },
  };
}

function keyMessage(key: KeyRecord): MessageInitShape<typeof KeySchema> {
  return {
    id: key.id,
    ownerId: key.ownerId,
    role: ROLES[key.role],
    name: key.name,
    createdAt: timestampMessage(key.createdAtMs),
    revokedAt: timestampMessage(key.revokedAtMs),
  };
}
