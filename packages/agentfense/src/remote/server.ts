import { rootCertificates } from "node:tls";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Endpoint } from "./endpoint.ts";

/** The services of one server, over one connection. */
export interface Server extends Disposable {
  readonly url: string;
  /** We show it a key, which says whose what we make is. */
  readonly withKey: boolean;
  readonly codebases: Client<typeof CodebaseService>;
  readonly sandboxes: Client<typeof SandboxService>;
  readonly events: Client<typeof EventService>;
  readonly system: Client<typeof SystemService>;
}

/** Nothing is sent before the first call. */
export function connectTo({ url, apiKey, certificates }: Endpoint): Server {
  const nodeOptions = certificates === undefined ? {} : { ca: [...rootCertificates, certificates] };
  // A connection of our own, so that the process can end when the work is done and not when the connection is idle.
  const sessionManager = new Http2SessionManager(url, undefined, nodeOptions);
  const transport = createGrpcTransport({
    baseUrl: url,
    nodeOptions,
    sessionManager,
    interceptors: apiKey === undefined ? [] : [showKey(apiKey)],
  });
  return {
    url,
    withKey: apiKey !== undefined,
    codebases: createClient(CodebaseService, transport),
    sandboxes: createClient(SandboxService, transport),
    events: createClient(EventService, transport),
    system: createClient(SystemService, transport),
    [Symbol.dispose]: () => sessionManager.abort(),
  };
}

function showKey(apiKey: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
}
