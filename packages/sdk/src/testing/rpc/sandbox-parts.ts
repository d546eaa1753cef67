import type { SandboxService } from "@agentfense/protocol/sandbox";
import type { Handlers } from "./handlers.ts";

/** A part of the service, by the names of its methods. */
export type SandboxHandlers<Names extends keyof Handlers<typeof SandboxService>> = Pick<
  Handlers<typeof SandboxService>,
  Names
>;
