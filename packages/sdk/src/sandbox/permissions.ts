import type { Rule } from "@agentfense/permission";
import type { SandboxClient } from "../client/client.ts";
import type { CallOptions, RuleOptions } from "../model/options.ts";
import type { PathExplanation, SandboxInfo } from "../model/records.ts";

/** The rules of a sandbox. */
export class SandboxPermissions {
  readonly #client: SandboxClient;
  readonly #sandboxId: string;
  readonly #learn: (info: SandboxInfo) => void;

  constructor(parts: {
    readonly client: SandboxClient;
    readonly sandboxId: string;
    /** Told what the server says of the sandbox. */
    readonly learn: (info: SandboxInfo) => void;
  }) {
    this.#client = parts.client;
    this.#sandboxId = parts.sandboxId;
    this.#learn = parts.learn;
  }

  /** Those in force now. */
  async get(options: CallOptions = {}): Promise<readonly Rule[]> {
    const info = await this.#client.getSandbox(this.#sandboxId, options);
    this.#learn(info);
    return info.permissions;
  }

  /** New rules instead of all there were, at once; gives those in force then. */
  async update(rules: readonly Rule[] | RuleOptions, options: CallOptions = {}): Promise<readonly Rule[]> {
    const info = await this.#client.updatePermissions(this.#sandboxId, rules, options);
    this.#learn(info);
    return info.permissions;
  }

  /** Which rule decides about a path, and which ones lost. */
  async explain(path: string, options: CallOptions = {}): Promise<PathExplanation> {
    return await this.#client.explainPath(this.#sandboxId, path, options);
  }
}
