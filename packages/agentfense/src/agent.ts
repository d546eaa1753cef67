// The classes of @agentfense/agent, with sandboxes in the process where no server is named.

import {
  BrowserRouter as BrowserRouterBase,
  type BrowserRouterOptions,
  DockerExecutor as DockerExecutorBase,
  type DockerExecutorOptions,
  FenseExecutor as FenseExecutorBase,
  type FenseExecutorOptions,
  type FensePoolOptions,
  fensePool as makeFensePool,
  sandboxPool as makeSandboxPool,
  type PooledFenseExecutor,
  SandboxManager as SandboxManagerBase,
  type SandboxManagerOptions,
  type SandboxPool,
  SubprocessExecutor as SubprocessExecutorBase,
  type SubprocessExecutorOptions,
} from "@agentfense/agent";
import { seccompFilter } from "@agentfense/server/seccomp";
import { Sandbox } from "./sandbox.ts";

export {
  type AcquireOptions,
  AgentError,
  AgentWorkspace,
  type AgentWorkspaceOptions,
  AioBrowsers,
  type AioBrowsersOptions,
  AioExecutor,
  type AioExecutorOptions,
  type AioServerInfo,
  type AnswerOutcome,
  type AnswerRefusal,
  type Assess,
  AutoApproveConfirmationService,
  AutoDenyConfirmationService,
  type BrokerEvent,
  type BrowserAction,
  type BrowserActionName,
  type BrowserContext,
  type BrowserDriver,
  BrowserError,
  type BrowserEvent,
  type BrowserParams,
  type BrowserResult,
  type BrowserRoute,
  type BrowserRouterOptions,
  type BrowserTab,
  CallbackConfirmationService,
  type CodeRunner,
  type ConfirmationAnswer,
  ConfirmationBroker,
  type ConfirmationBrokerOptions,
  type ConfirmationCallback,
  ConfirmationConnectionError,
  type ConfirmationDecision,
  type ConfirmationDoorOptions,
  type ConfirmationEndpoint,
  type ConfirmationRequest,
  type ConfirmationResolution,
  ConfirmationReviewer,
  type ConfirmationReviewerOptions,
  type ConfirmationReviewers,
  type ConfirmationService,
  type ConfirmationVerdict,
  type ConfirmationViewer,
  confirmationDoor,
  type DestructionReason,
  type DetectedPattern,
  type DockerExecutorOptions,
  declareTool,
  type ExecutionOutcome,
  type ExecutionRecord,
  type ExecutionRequest,
  type ExecutionResult,
  type ExecutionStep,
  type ExecutionTask,
  type Executor,
  ExecutorError,
  type ExecutorLender,
  type ExecutorPoolOptions,
  executorPool,
  type FailureCode,
  type FenseExecutorOptions,
  type FensePoolOptions,
  type GivenAnswer,
  isApproval,
  LANGUAGES,
  type Language,
  type ManagerEvent,
  type ManagerListener,
  PathTraversalError,
  type PendingConfirmation,
  type PoolClock,
  PoolError,
  type PoolEvent,
  type PooledExecutor,
  PooledFenseExecutor,
  type PoolMetrics,
  type PoolOptions,
  type PoolStep,
  RemoteConfirmationService,
  type Requester,
  type ReviewEvent,
  type ReviewerIdentity,
  type ReviewOutcome,
  RISK_LEVELS,
  RISK_TABLE,
  type RichOutput,
  type RiskAssessment,
  type RiskDecision,
  type RiskLevel,
  RunCodeTool,
  requestHash,
  type SandboxManagerOptions,
  SandboxPool,
  type SandboxSource,
  type SandboxType,
  SandboxWorkspace,
  type SandboxWorkspaceOptions,
  type SecurityMode,
  type SessionState,
  type SubprocessExecutorOptions,
  sandboxWorld,
  type TerminalConfirmationOptions,
  TerminalConfirmationService,
  type Timer,
  type TimerOptions,
  TOOLS,
  type Tool,
  type ToolContext,
  type ToolDescription,
  type ToolEffects,
  ToolFailure,
  type ToolImage,
  type ToolResult,
  type ToolSchema,
  UnifiedRiskPolicy,
  type UrlRules,
  WebSocketConfirmationService,
  type Workspace,
  type WorkspaceEntry,
  WorkspaceError,
  type WorkspaceErrorCode,
  type WorldContext,
  type WorldEvent,
  WorldInterface,
  type WorldListener,
  type WorldOptions,
  type WorldParts,
} from "@agentfense/agent";
export {
  type AioBrowser,
  type AioBrowserInfo,
  type AioDoorOptions,
  aioDoor,
  type Door,
  type DoorCall,
  type DoorCaller,
} from "@agentfense/doors";

/** The one entrance for code of a session: assess, ask, choose, run, record. */
export class SandboxManager extends SandboxManagerBase {
  constructor(options: SandboxManagerOptions) {
    const { sandboxes = Sandbox, syscallFilter = seccompFilter() } = options;
    super({ ...options, sandboxes, syscallFilter });
  }
}

/** Runs code that is SAFE in a process of its own, in a box without network on the workspace's directory. */
export class SubprocessExecutor extends SubprocessExecutorBase {
  constructor(options: SubprocessExecutorOptions) {
    super({ ...options, syscallFilter: options.syscallFilter ?? seccompFilter() });
  }
}

/** Runs code in a sandbox with rules. It opens one with the first execution, and destroys it when it is disposed of. */
export class FenseExecutor extends FenseExecutorBase {
  constructor(options: FenseExecutorOptions) {
    super(options.sandbox === undefined ? { ...options, sandboxes: options.sandboxes ?? Sandbox } : options);
  }
}

/** Runs each piece of code in a container of its own, without network, with a limit on memory and processes. */
export class DockerExecutor extends DockerExecutorBase {
  constructor(options: DockerExecutorOptions) {
    super({ ...options, sandboxes: options.sandboxes ?? Sandbox });
  }
}

/** One browser at a time for a session, inside a sandbox or outside. */
export class BrowserRouter extends BrowserRouterBase {
  constructor(sessionId: string, options: BrowserRouterOptions) {
    super(sessionId, { ...options, sandboxes: options.sandboxes ?? Sandbox });
  }
}

/** A pool of sandboxes that run; each serves one session and is destroyed after it. */
export function sandboxPool(options: FensePoolOptions<Sandbox>): SandboxPool<Sandbox> {
  return makeSandboxPool({ ...options, sandboxes: options.sandboxes ?? Sandbox });
}

/** The same as executors, for a SandboxManager. */
export function fensePool(options: FensePoolOptions): SandboxPool<PooledFenseExecutor> {
  return makeFensePool({ ...options, sandboxes: options.sandboxes ?? Sandbox });
}
