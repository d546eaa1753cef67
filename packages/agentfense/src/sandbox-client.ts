import { type ConnectionOptions, type Engine, SandboxClient as RemoteSandboxClient } from "@agentfense/sdk";
import { defaultEngine } from "./embedded/default-engine.ts";

/**
 * Every call of the contract, one method each: to the engine that is handed in, else to the server of `endpoint` or
 * AGENTFENSE_ENDPOINT, else to the engine of this process. Nothing is sent or started before the first one.
 */
export class SandboxClient extends RemoteSandboxClient {
  constructor(options: ConnectionOptions & { readonly engine?: Engine | undefined } = {}) {
    super({ ...options, engine: options.engine ?? defaultEngine(options, process.env) });
  }
}
