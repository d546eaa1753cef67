import type { SandboxService } from "@agentfense/protocol/sandbox";
import type { World } from "../world.ts";
import { changeHandlers } from "./change-handlers.ts";
import { execHandlers } from "./exec-handlers.ts";
import { fileHandlers } from "./file-handlers.ts";
import type { Handlers } from "./handlers.ts";
import { lifecycleHandlers } from "./lifecycle-handlers.ts";
import { portHandlers } from "./port-handlers.ts";
import { processHandlers } from "./process-handlers.ts";
import { sessionHandlers } from "./session-handlers.ts";
import { terminalHandlers } from "./terminal-handlers.ts";

/** The service in parts, each a file. */
export function sandboxHandlers(world: World): Handlers<typeof SandboxService> {
  return {
    ...lifecycleHandlers(world),
    ...execHandlers(world),
    ...sessionHandlers(world),
    ...terminalHandlers(world),
    ...processHandlers(world),
    ...portHandlers(world),
    ...changeHandlers(world),
    ...fileHandlers(world),
  };
}
