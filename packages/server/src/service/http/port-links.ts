import type { AuditLog } from "../../runtime/audit/api.ts";
import type { Caller } from "../../runtime/caller.ts";
import type { PortTokens } from "../../runtime/ports/tokens.ts";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import type { PortLink, PortLinks } from "../rpc/port-handlers.ts";
import { TOKEN_PARAMETER } from "./port-target.ts";

export interface PortLinksOptions {
  readonly sandboxes: Pick<Sandboxes, "get">;
  readonly audit: Pick<AuditLog, "record">;
  readonly tokens: PortTokens;
  /** Where HTTP is served: "http://127.0.0.1:8080". */
  readonly origin: () => Promise<string>;
}

/** Links to ports by the address at which HTTP is served. */
export class HttpPortLinks implements PortLinks {
  readonly #options: PortLinksOptions;

  constructor(options: PortLinksOptions) {
    this.#options = options;
  }

  async linkTo(caller: Caller, sandboxId: string, port: number, expiresInMs: number): Promise<PortLink> {
    const { ownerId, codebaseId } = await this.#options.sandboxes.get(caller, sandboxId);
    const expiresAtMs = Date.now() + expiresInMs;
    const { keyId } = caller;
    const token = this.#options.tokens.make({ sandboxId, port, expiresAtMs, keyId });
    const about = { ownerId, sandboxId, codebaseId, ...(keyId === undefined ? {} : { keyId }) };
    const expires_at = new Date(expiresAtMs).toISOString();
    this.#options.audit.record({ type: "port_link_made", ...about, data: { port, expires_at } });
    const origin = await this.#options.origin();
    const { protocol, port: own } = new URL(origin);
    const host = `${port}-${sandboxId}.localhost${own === "" ? "" : `:${own}`}`;
    const url = `${origin}/v1/sandboxes/${sandboxId}/ports/${port}/`;
    return { url, hostUrl: `${protocol}//${host}/?${TOKEN_PARAMETER}=${token}`, token, expiresAtMs };
  }
}
