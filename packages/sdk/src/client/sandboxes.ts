import type { Rule } from "@agentfense/permission";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { type Listing, paged } from "../listing.ts";
import type { CallOptions, NetworkList, RuleOptions, SandboxSecret } from "../model/options.ts";
import type { HomeInfo, PathExplanation, SandboxInfo, SecretInfo } from "../model/records.ts";
import type {
  CreateSandboxRequest,
  ListSandboxesOptions,
  OwnerOptions,
  PutSecretOptions,
  UpdateExpiryOptions,
} from "../model/requests.ts";
import { readSecret } from "../secrets/values.ts";
import { listFields } from "./messages/network.ts";
import { pageSizeOf } from "./messages/numbers.ts";
import { rulesFor } from "./messages/rules.ts";
import { createSandboxMessage, explanationOf, sandboxOf, secretOf } from "./messages/sandbox.ts";
import { durationOf } from "./messages/time.ts";
import { numberFor, SANDBOX_STATUSES } from "./messages/words.ts";
import type { Rpc } from "./rpc.ts";

const { method } = SandboxService;

export class SandboxCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  async create(request: CreateSandboxRequest, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.createSandbox, await createSandboxMessage(request), options));
  }

  async get(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.getSandbox, { sandboxId }, options));
  }

  list(options: ListSandboxesOptions = {}): Listing<SandboxInfo> {
    const { codebaseId = "", ownerId = "", status, labels, pageSize, signal } = options;
    return paged(async (pageToken) => {
      const filter = {
        codebaseId,
        ownerId,
        status: numberFor(SANDBOX_STATUSES, status, "status"),
        labels: { ...labels },
      };
      const request = { ...filter, pageSize: pageSizeOf(pageSize), pageToken };
      const page = await this.#rpc.unary(method.listSandboxes, request, { signal });
      return { items: page.sandboxes.map(sandboxOf), nextPageToken: page.nextPageToken };
    });
  }

  async start(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.startSandbox, { sandboxId }, options));
  }

  async stop(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.stopSandbox, { sandboxId }, options));
  }

  async pause(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.pauseSandbox, { sandboxId }, options));
  }

  async resume(sandboxId: string, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.resumeSandbox, { sandboxId }, options));
  }

  async destroy(sandboxId: string, options?: CallOptions): Promise<void> {
    await this.#rpc.unary(method.destroySandbox, { sandboxId }, options);
  }

  async listHomes({ ownerId = "", ...options }: OwnerOptions = {}): Promise<HomeInfo[]> {
    const { homes } = await this.#rpc.unary(method.listHomes, { ownerId }, options);
    return homes.map((home) => ({ name: home.name, ownerId: home.ownerId, sandboxId: home.sandboxId }));
  }

  async deleteHome(name: string, { ownerId = "", ...options }: OwnerOptions = {}): Promise<void> {
    await this.#rpc.unary(method.deleteHome, { name, ownerId }, options);
  }

  async putSecret(name: string, { ownerId = "", signal, ...secret }: PutSecretOptions): Promise<SecretInfo> {
    const request = { ...(await readSecret(name, secret as SandboxSecret)), ownerId };
    return secretOf(await this.#rpc.unary(method.putSecret, request, { signal }));
  }

  async listSecrets({ ownerId = "", ...options }: OwnerOptions = {}): Promise<SecretInfo[]> {
    return (await this.#rpc.unary(method.listSecrets, { ownerId }, options)).secrets.map(secretOf);
  }

  async deleteSecret(name: string, { ownerId = "", ...options }: OwnerOptions = {}): Promise<void> {
    await this.#rpc.unary(method.deleteSecret, { name, ownerId }, options);
  }

  async updatePermissions(
    sandboxId: string,
    rules: RuleOptions | readonly Rule[],
    options?: CallOptions,
  ): Promise<SandboxInfo> {
    const permissions = rulesFor(isList(rules) ? { permissions: rules } : rules);
    return sandboxOf(await this.#rpc.unary(method.updatePermissions, { sandboxId, permissions }, options));
  }

  async updateNetwork(sandboxId: string, network: NetworkList, options?: CallOptions): Promise<SandboxInfo> {
    return sandboxOf(await this.#rpc.unary(method.updateNetwork, { sandboxId, ...listFields(network) }, options));
  }

  async updateExpiry(
    sandboxId: string,
    expiresInMs: number,
    { extendOnly = false, signal }: UpdateExpiryOptions = {},
  ): Promise<SandboxInfo> {
    const request = { sandboxId, expiresIn: durationOf(expiresInMs, "expiresInMs"), extendOnly };
    return sandboxOf(await this.#rpc.unary(method.updateExpiry, request, { signal }));
  }

  async explainPath(sandboxId: string, path: string, options?: CallOptions): Promise<PathExplanation> {
    return explanationOf(await this.#rpc.unary(method.explainPath, { sandboxId, path }, options));
  }
}

/** Array.isArray knows nothing of lists that are read-only. */
function isList(rules: RuleOptions | readonly Rule[]): rules is readonly Rule[] {
  return Array.isArray(rules);
}
