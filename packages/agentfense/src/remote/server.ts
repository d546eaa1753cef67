import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { type Endpoint, type Engine, RemoteEngine } from "@agentfense/sdk/engine";
import { type Client, createClient } from "@connectrpc/connect";

/** The services of one server, over one connection. */
export interface Server extends Disposable {
  readonly url: string;
  /** We show it a key, which says whose what we make is. */
  readonly withKey: boolean;
  /** The same connection, for the SDK. */
  readonly engine: Engine;
  readonly codebases: Client<typeof CodebaseService>;
  readonly sandboxes: Client<typeof SandboxService>;
  readonly events: Client<typeof EventService>;
  readonly system: Client<typeof SystemService>;
}

/** Nothing is sent before the first call. */
export function connectTo(endpoint: Endpoint): Server {
  const engine = new RemoteEngine(endpoint);
  const { transport } = engine;
  return {
    url: endpoint.url,
    withKey: endpoint.apiKey !== undefined,
    engine,
    codebases: createClient(CodebaseService, transport),
    sandboxes: createClient(SandboxService, transport),
    events: createClient(EventService, transport),
    system: createClient(SystemService, transport),
    [Symbol.dispose]: () => engine.close(),
  };
}
