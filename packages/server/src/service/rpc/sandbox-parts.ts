import type { SandboxService } from "@agentfense/protocol/sandbox";
import type { Handlers } from "./handlers.ts";

/** Some of the methods of SandboxService: it has more than one file can tell. */
export type SandboxHandlers<Names extends keyof Handlers<typeof SandboxService>> = Pick<
  Handlers<typeof SandboxService>,
  Names
>;

export interface MessageLimits {
  readonly maxMessageBytes: number;
}
