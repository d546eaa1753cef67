export type { BackendName, CreateOptions, NetworkMode, TerminalSize } from "./isolation/backend/backend.ts";
export { SandboxError, type SandboxErrorCode } from "./isolation/backend/errors.ts";
export type { ResourceLimits, ResourceUsage } from "./isolation/backend/limits.ts";
export { type ApplySpec, applyChanges } from "./isolation/changes/apply.ts";
export {
  type CollectedChange,
  type Collection,
  type CollectSpec,
  collectChanges,
} from "./isolation/changes/collect.ts";
export { type DiffSpec, diffChanges, type FileDiff } from "./isolation/changes/diff.ts";
export { type DiscardReport, type DiscardSpec, discardChanges } from "./isolation/changes/discard.ts";
export { ChangesError, type ChangesErrorCode } from "./isolation/changes/errors.ts";
export { type Change, type ListSpec, listChanges } from "./isolation/changes/list.ts";
export type { ApplyReport, ChangeReport, Outcome } from "./isolation/changes/report.ts";
export { type SettleSpec, settleChanges } from "./isolation/changes/settle.ts";
export { examineHost } from "./isolation/doctor/examine.ts";
export { type Finding, type RealRuntime, workingRuntimes } from "./isolation/doctor/finding.ts";
export { encodeText } from "./isolation/filesystem/names.ts";
export type { Owner } from "./isolation/filesystem/presentation.ts";
export type { QuotaLimits } from "./isolation/filesystem/quota.ts";
export { removeTree } from "./isolation/filesystem/remove-tree.ts";
export { TemporaryHome } from "./isolation/instance/temporary-home.ts";
export { type Isolation, type IsolationOptions, openIsolation } from "./isolation/isolation.ts";
export type { MockCall, MockOptions } from "./isolation/mock/backend.ts";
export type { MockAnswer } from "./isolation/mock/plan.ts";
export {
  type LogLine,
  MountHost,
  type WorkspaceEvent,
  type WorkspaceMount,
  type WorkspaceSpec,
} from "./isolation/mount/host.ts";
export { cleanStaleMount } from "./isolation/mount/mount-table.ts";
export type {
  Cancellable,
  ExecEvent,
  ExecOutcome,
  ExecRequest,
  ExecResult,
  Sandbox,
  SandboxEvent,
  SandboxLimits,
  SandboxSpec,
  SandboxStatus,
  Session,
  SessionEnd,
  SessionExecRequest,
  SessionExecResult,
  SessionRequest,
  Terminal,
  TerminalRequest,
  WorkspaceSpecification,
} from "./isolation/sandbox/api.ts";
export { openServer, type RunningServer } from "./open-server.ts";
export { verifyAudit } from "./runtime/audit/verify.ts";
export { RuntimeError, type RuntimeErrorCode } from "./runtime/errors.ts";
export type { Keys } from "./runtime/keys/api.ts";
export { openKeys } from "./runtime/keys/open.ts";
export { openSqliteStore } from "./runtime/store/sqlite/open.ts";
export type { KeyRecord, MetadataStore } from "./runtime/store/store.ts";
export { type DescribedSetting, describeConfiguration } from "./service/configuration/describe.ts";
export type { ConfigurationFlag } from "./service/configuration/flags.ts";
export { type LoadedConfiguration, loadConfiguration } from "./service/configuration/load.ts";
export { ConfigurationError } from "./service/configuration/problems.ts";
export type { ServerConfig } from "./service/configuration/schema.ts";
