import type { AuditLog } from "../../runtime/audit/api.ts";
import type { Codebases } from "../../runtime/codebases/api.ts";
import type { Keys } from "../../runtime/keys/api.ts";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import type { RuntimeName } from "../../runtime/store/store.ts";
import type { PortLinks } from "./port-handlers.ts";

/** What the services are a face of. */
export interface ServiceRuntime {
  readonly codebases: Codebases;
  readonly sandboxes: Sandboxes;
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
