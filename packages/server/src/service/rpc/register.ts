import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import type { ConnectRouter } from "@connectrpc/connect";
import type { AuditLog } from "../../runtime/audit/api.ts";
import type { Codebases } from "../../runtime/codebases/api.ts";
import type { Keys } from "../../runtime/keys/api.ts";
import type { Log } from "../../runtime/log.ts";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import type { Secrets } from "../../runtime/secrets/api.ts";
import type { RuntimeName } from "../../runtime/store/store.ts";
import { codebaseHandlers } from "./codebase-service.ts";
import { serve } from "./handlers.ts";
import type { PortLinks } from "./port-handlers.ts";
import { sandboxHandlers } from "./sandbox-service.ts";
import { admitToSystem, eventHandlers, systemHandlers } from "./system-service.ts";

/** What the services are a face of. */
export interface ServiceRuntime {
  readonly codebases: Codebases;
  readonly sandboxes: Sandboxes;
  readonly secrets: Secrets;
  readonly audit: AuditLog;
  readonly keys: Keys;
  readonly links: PortLinks;
  readonly info: ServerFacts;
}

export interface ServerFacts {
  readonly version: string;
  /** The default one first. */
  readonly runtimes: readonly RuntimeName[];
  /** Limits that this server cannot enforce, each as a sentence. */
  degradations(): readonly string[];
  readonly keysRequired: boolean;
}

/** What clients of gRPC accept in one message unless they are told otherwise. */
const DEFAULT_MESSAGE_BYTES = 4 * 1024 * 1024;

export interface ServiceOptions {
  readonly log: Log;
  /** The largest message a client takes; a command's output is cut to it. Default 4 MiB. */
  readonly maxMessageBytes?: number;
}

/** Puts all services of the contract on a router. Whoever made the router sets `callerKey` before a handler runs. */
export function registerServices(router: ConnectRouter, runtime: ServiceRuntime, options: ServiceOptions): void {
  const { log, maxMessageBytes = DEFAULT_MESSAGE_BYTES } = options;
  // What is done stays done when the audit log cannot be written; the operator's log has heard of it.
  const audited = (): Promise<void> => runtime.audit.flush().catch(() => {});
  const serving = { log, audited };
  serve(router, CodebaseService, codebaseHandlers(runtime), serving);
  serve(router, SandboxService, sandboxHandlers(runtime, { maxMessageBytes }), serving);
  serve(router, EventService, eventHandlers(runtime.audit), serving);
  serve(router, SystemService, systemHandlers(runtime), { ...serving, admit: admitToSystem });
}
