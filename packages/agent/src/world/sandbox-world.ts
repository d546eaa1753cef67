import type { Sandbox } from "@agentfense/sdk";
import type { ConfirmationService } from "../confirmation/confirmation.ts";
import { FenseExecutor } from "../executors/fense/fense-executor.ts";
import { SandboxManager } from "../manager/manager.ts";
import type { BrowserDriver } from "../tools/tool.ts";
import type { SecurityMode } from "../types.ts";
import { SandboxWorkspace } from "../workspace/sandbox-workspace.ts";
import { WorldInterface } from "./world.ts";

/** A world that is one sandbox, with its rules: code runs there and nowhere else, whatever is thought of it. */
export function sandboxWorld(
  sandbox: Sandbox,
  options: {
    readonly sessionId?: string | undefined;
    readonly securityMode?: SecurityMode | undefined;
    readonly confirmation?: ConfirmationService | undefined;
    readonly browser?: BrowserDriver | undefined;
  } = {},
): WorldInterface {
  const { sessionId = sandbox.id, securityMode = "STRICT", confirmation, browser } = options;
  const workspace = new SandboxWorkspace(sandbox);
  const executors = [new FenseExecutor({ sandbox })];
  const manager = new SandboxManager({ sessionId, securityMode, confirmation, workspace, executors });
  return new WorldInterface({ sessionId, securityMode, confirmation, manager, workspace, sandbox, browser });
}
