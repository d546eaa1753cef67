import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import type { ConnectRouter } from "@connectrpc/connect";
import type { ServiceLog } from "../log.ts";
import { codebaseHandlers } from "./codebase-service.ts";
import { eventHandlers } from "./event-service.ts";
import { type ServeOptions, serve } from "./handlers.ts";
import { sandboxHandlers } from "./sandbox-service.ts";
import type { ServiceRuntime } from "./service-runtime.ts";
import { systemHandlers } from "./system-service.ts";

/** What clients of gRPC accept in one message unless they are told otherwise. */
const DEFAULT_MESSAGE_BYTES = 4 * 1024 * 1024;

export interface ServiceOptions {
  readonly log: ServiceLog;
  /** The largest message a client takes; a command's output is cut to it. Default 4 MiB. */
  readonly maxMessageBytes?: number;
}

/** Puts all services of the contract on a router. Whoever made the router sets `callerKey` before a handler runs. */
export function registerServices(router: ConnectRouter, runtime: ServiceRuntime, options: ServiceOptions): void {
  const { log, maxMessageBytes = DEFAULT_MESSAGE_BYTES } = options;
  // What is done stays done when the audit log cannot be written; the operator's log has heard of it.
  const witnessed = (): Promise<void> => runtime.audit.flush().catch(() => {});
  const serving: ServeOptions = { log, witnessed };
  serve(router, CodebaseService, codebaseHandlers(runtime), serving);
  serve(router, SandboxService, sandboxHandlers(runtime.sandboxes, runtime.links, { maxMessageBytes }), serving);
  serve(router, EventService, eventHandlers(runtime.audit), serving);
  serve(router, SystemService, systemHandlers(runtime), serving);
}
