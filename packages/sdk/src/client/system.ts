import { type Key, SystemService } from "@agentfense/protocol/system";
import { SandboxError } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import type { ApiKey, ServerInfo } from "../model/records.ts";
import type { CreatedKey, CreateKeyRequest } from "../model/requests.ts";
import { dateOf, datesOf, numberFor, ROLES, RUNTIMES, wordOf } from "./messages/values.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SystemService;

export class SystemCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  async getServerInfo(options?: CallOptions): Promise<ServerInfo> {
    const message = await this.#rpc.unary(method.getServerInfo, {}, options);
    return {
      version: message.version,
      runtimes: message.runtimes.map((runtime) => wordOf(RUNTIMES, runtime, "runtime")),
      degradations: [...message.degradations],
      keysRequired: message.keysRequired,
      ownerId: message.ownerId,
      role: wordOf(ROLES, message.role, "role"),
    };
  }

  async createKey({ ownerId = "", role, name = "" }: CreateKeyRequest, options?: CallOptions): Promise<CreatedKey> {
    const request = { ownerId, role: numberFor(ROLES, role, "role"), name };
    const { key, secret } = await this.#rpc.unary(method.createKey, request, options);
    if (key === undefined) throw new SandboxError("the server left out the key that it made", { code: "UNKNOWN" });
    return { key: keyOf(key), secret };
  }

  async listKeys(options?: CallOptions): Promise<ApiKey[]> {
    return (await this.#rpc.unary(method.listKeys, {}, options)).keys.map(keyOf);
  }

  async revokeKey(keyId: string, options?: CallOptions): Promise<void> {
    await this.#rpc.unary(method.revokeKey, { keyId }, options);
  }
}

function keyOf({ id, ownerId, role, name, createdAt, revokedAt, lastUsedAt }: Key): ApiKey {
  return {
    id,
    ownerId,
    role: wordOf(ROLES, role, "role"),
    name,
    createdAt: dateOf(createdAt),
    ...datesOf({ revokedAt, lastUsedAt }),
  };
}
