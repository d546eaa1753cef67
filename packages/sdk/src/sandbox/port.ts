import type { SandboxClient } from "../client/client.ts";
import type { CallOptions } from "../model/options.ts";
import type { PortInfo } from "../model/records.ts";
import type { PortConnection } from "../model/requests.ts";

/** A port of a sandbox, and the ways to reach what listens there. `Sandbox.port` makes one. */
export class SandboxPort implements PortInfo {
  readonly sandboxId: string;
  readonly port: number;
  readonly url: string;
  readonly hostUrl: string;
  readonly token: string;
  readonly expiresAt: Date;
  readonly #client: SandboxClient;

  constructor(client: SandboxClient, info: PortInfo) {
    this.#client = client;
    this.sandboxId = info.sandboxId;
    this.port = info.port;
    this.url = info.url;
    this.hostUrl = info.hostUrl;
    this.token = info.token;
    this.expiresAt = info.expiresAt;
  }

  /** A connection, byte by byte. */
  async connect(options: CallOptions = {}): Promise<PortConnection> {
    return await this.#client.connectPort(this.sandboxId, this.port, options);
  }
}
