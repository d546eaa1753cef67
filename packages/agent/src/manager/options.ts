import type { ConfirmationService } from "../confirmation/confirmation.ts";
import type { Executor } from "../executors/executor.ts";
import type { SandboxSource } from "../executors/sandboxed/sandbox-source.ts";
import type { SecurityMode } from "../types.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { Assess } from "./approval.ts";
import type { ManagerListener } from "./events.ts";
import type { ExecutorLender } from "./session-executors.ts";

export interface SandboxManagerOptions {
  readonly sessionId: string;
  /** Default STRICT. */
  readonly securityMode?: SecurityMode | undefined;
  /** Asked before risky code is run; absent: such code is denied. */
  readonly confirmation?: ConfirmationService | undefined;
  /** Default 2 min. */
  readonly confirmationTimeoutMs?: number | undefined;
  /**
   * Where code is run. What is handed in stays the caller's to close.
   *
   * | pool   | executors | code runs                                                             |
   * | ------ | --------- | --------------------------------------------------------------------- |
   * | absent | absent    | SAFE: in a subprocess in a box; else in a sandbox; both on the workspace |
   * | absent | given     | in the one that the table asks for, else in another that is a sandbox  |
   * | given  | absent    | in the session's instance of the pool, also when it is SAFE            |
   * | given  | given     | SAFE: in a subprocess executor, else in the pool, else in one of these |
   */
  readonly pool?: ExecutorLender | undefined;
  readonly executors?: readonly Executor[] | undefined;
  /** Default: that of the pool's instance, else an AgentWorkspace of the session. */
  readonly workspace?: Workspace | undefined;
  /** What opens sandboxes for the default executors; default: those of a server, by the SDK. */
  readonly sandboxes?: SandboxSource | undefined;
  /** For the default subprocess executor; absent: there is none, and SAFE code runs in the sandbox too. */
  readonly syscallFilter?: Uint8Array | undefined;
  /** Default: UnifiedRiskPolicy.assess. What it throws counts as CRITICAL. */
  readonly assess?: Assess | undefined;
  /** How many executions are remembered; default 100. */
  readonly historyLimit?: number | undefined;
  readonly onEvent?: ManagerListener | undefined;
}
