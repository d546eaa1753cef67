export {
  type ToolEffects,
  ToolFailure,
  type ToolImage,
  type ToolResult,
  type ToolSchema,
} from "@agentfense/sdk/tool-kit";
export type { BrowserAction, BrowserActionName, BrowserParams } from "./browser/action.ts";
export { AioBrowsers, type AioBrowsersOptions } from "./browser/aio-browsers.ts";
export type { BrowserRouterOptions } from "./browser/options.ts";
export type { BrowserTab } from "./browser/page/tabs.ts";
export type { BrowserContext, BrowserEvent, BrowserResult, BrowserRoute } from "./browser/result.ts";
export { BrowserRouter } from "./browser/router.ts";
export type { UrlRules } from "./browser/url/policy.ts";
export {
  type AnswerOutcome,
  type BrokerEvent,
  ConfirmationBroker,
  type ConfirmationBrokerOptions,
  type ConfirmationViewer,
  type GivenAnswer,
  type Requester,
  type ReviewerIdentity,
} from "./confirmation/broker.ts";
export {
  AutoApproveConfirmationService,
  AutoDenyConfirmationService,
  CallbackConfirmationService,
  type ConfirmationCallback,
  type ConfirmationVerdict,
} from "./confirmation/callback.ts";
export { ConfirmationConnectionError, type ConfirmationEndpoint } from "./confirmation/client/link.ts";
export type { ReviewEvent } from "./confirmation/client/pending-list.ts";
export { RemoteConfirmationService } from "./confirmation/client/remote-service.ts";
export {
  ConfirmationReviewer,
  type ConfirmationReviewerOptions,
  type ReviewOutcome,
} from "./confirmation/client/reviewer.ts";
export type {
  ConfirmationAnswer,
  ConfirmationDecision,
  ConfirmationRequest,
  ConfirmationService,
} from "./confirmation/confirmation.ts";
export type { ConfirmationReviewers } from "./confirmation/door/connection.ts";
export { type ConfirmationDoorOptions, confirmationDoor } from "./confirmation/door/door.ts";
export { isApproval, requestHash } from "./confirmation/hash.ts";
export type { AnswerRefusal, ConfirmationResolution, PendingConfirmation } from "./confirmation/protocol.ts";
export { type TerminalConfirmationOptions, TerminalConfirmationService } from "./confirmation/terminal/terminal.ts";
export { WebSocketConfirmationService } from "./confirmation/websocket-service.ts";
export {
  AgentError,
  BrowserError,
  ExecutorError,
  PathTraversalError,
  PoolError,
  WorkspaceError,
  type WorkspaceErrorCode,
} from "./errors.ts";
export { AioExecutor, type AioExecutorOptions, type AioServerInfo } from "./executors/aio/aio-executor.ts";
export { DockerExecutor, type DockerExecutorOptions } from "./executors/docker/docker-executor.ts";
export type { ExecutionTask, Executor } from "./executors/executor.ts";
export { FenseExecutor, type FenseExecutorOptions } from "./executors/fense/fense-executor.ts";
export type { SandboxSource } from "./executors/sandboxed/sandbox-source.ts";
export { SubprocessExecutor, type SubprocessExecutorOptions } from "./executors/subprocess/subprocess-executor.ts";
export type { Assess } from "./manager/approval.ts";
export type { ExecutionStep, ManagerEvent, ManagerListener } from "./manager/events.ts";
export type { ExecutionRecord } from "./manager/history.ts";
export { SandboxManager } from "./manager/manager.ts";
export type { SandboxManagerOptions } from "./manager/options.ts";
export type { ExecutorLender, PooledExecutor } from "./manager/session-executors.ts";
export type { DestructionReason, PoolEvent, PoolStep } from "./pool/events.ts";
export { type ExecutorPoolOptions, executorPool } from "./pool/executor-pool.ts";
export type { PoolMetrics } from "./pool/metrics.ts";
export type { PoolClock, PoolOptions, Timer, TimerOptions } from "./pool/options.ts";
export { type AcquireOptions, SandboxPool, type SessionState } from "./pool/pool.ts";
export { type FensePoolOptions, fensePool, PooledFenseExecutor, sandboxPool } from "./pool/sandboxes.ts";
export { RISK_TABLE, type RiskDecision, UnifiedRiskPolicy } from "./risk/table.ts";
export { TOOLS } from "./tools/all.ts";
export { RunCodeTool } from "./tools/code.ts";
export {
  type BrowserDriver,
  type CodeRunner,
  declareTool,
  type Tool,
  type ToolContext,
  type WorldParts,
} from "./tools/tool.ts";
export {
  type DetectedPattern,
  type ExecutionOutcome,
  type ExecutionRequest,
  type ExecutionResult,
  type FailureCode,
  LANGUAGES,
  type Language,
  RISK_LEVELS,
  type RichOutput,
  type RiskAssessment,
  type RiskLevel,
  type SandboxType,
  type SecurityMode,
} from "./types.ts";
export { AgentWorkspace, type AgentWorkspaceOptions } from "./workspace/agent-workspace.ts";
export { SandboxWorkspace, type SandboxWorkspaceOptions } from "./workspace/sandbox-workspace.ts";
export type { Workspace, WorkspaceEntry } from "./workspace/workspace.ts";
export { sandboxWorld } from "./world/sandbox-world.ts";
export {
  type ToolDescription,
  type WorldContext,
  type WorldEvent,
  WorldInterface,
  type WorldListener,
  type WorldOptions,
} from "./world/world.ts";
