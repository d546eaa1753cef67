export type {
  BackendName,
  CreateOptions,
  NetworkMode,
  ResourceLimits,
  ResourceUsage,
  TerminalSize,
} from "./backend/backend.ts";
export { IsolationError, type IsolationErrorCode } from "./backend/isolation-error.ts";
export { type ApplySpec, applyChanges } from "./changes/application.ts";
export { deflatePiece, literals, type PatchContent, type PatchFile } from "./changes/binary-patch.ts";
export { ChangesError, type ChangesErrorCode } from "./changes/changes-error.ts";
export {
  type CollectedChange,
  type Collection,
  type CollectSpec,
  collectChanges,
} from "./changes/collect.ts";
export type { ApplyReport, ChangeReport, Outcome } from "./changes/destination.ts";
export { type DiffSpec, diffChanges, type FileDiff } from "./changes/diff.ts";
export { type DiscardReport, type DiscardSpec, discardChanges } from "./changes/discard.ts";
export {
  type Change,
  type ChangeCounts,
  foldChanges,
  type ListedChange,
  type ListSpec,
  listChanges,
} from "./changes/list.ts";
export { type SettleSpec, settleChanges } from "./changes/settle.ts";
export type { CodeEvent, CodeRequest } from "./code/api.ts";
export type { Cancellable, ExecEvent, ExecOutcome, ExecRequest, ExecResult } from "./exec/api.ts";
export type { AccessEvent } from "./filesystem/denials.ts";
export type { FreezeSpec, Frozen } from "./filesystem/freezing.ts";
export { encodeText } from "./filesystem/names.ts";
export type { Owner } from "./filesystem/presentation.ts";
export type { QuotaLimits } from "./filesystem/quota.ts";
export { removeTree } from "./filesystem/remove-tree.ts";
export { homeDirectory, lockHome } from "./instance/home-directory.ts";
export { TemporaryHome } from "./instance/temporary-home.ts";
export { type Isolation, type IsolationOptions, openIsolation } from "./isolation.ts";
export type { LogLine } from "./log.ts";
export { type MergeConflict, type MergeDelta, type MergeReport, type MergeSpec, mergeDeltas } from "./merge/deltas.ts";
export type { DriverRule } from "./merge/drivers.ts";
export type { MockCall, MockOptions } from "./mock/backend.ts";
export type { MockAnswer } from "./mock/process.ts";
export { MountHost, type WorkspaceEvent, type WorkspaceMount, type WorkspaceSpec } from "./mount/host.ts";
export { cleanStaleMount } from "./mount/mount-table.ts";
export { learningRules, networkRules, ruleText } from "./network/list.ts";
export {
  parseSecretRule,
  placeText,
  type SecretRule,
  type SecretWithValue,
  withSecretHosts,
} from "./network/secrets.ts";
export type {
  BoxedWorkspace,
  ProcessEvent,
  SandboxEvent,
  SandboxLimits,
  SandboxProcess,
  SandboxSpec,
  Terminal,
  TerminalRequest,
  WorkspaceSpecification,
} from "./sandbox/api.ts";
export type { BoxSession, SessionEnd, SessionExecRequest, SessionExecResult, SessionRequest } from "./session/api.ts";
