// What the command line is made of, for programs that mount a workspace or run sandboxes themselves.

export {
  compileRules,
  extendPreset,
  getPreset,
  type Level,
  type Policy,
  type Rule,
  RuleError,
} from "@agentfense/permission";
export {
  type Change,
  cleanStaleMount,
  type ExecResult,
  type Isolation,
  listChanges,
  MountHost,
  openIsolation,
  type Sandbox,
  SandboxError,
  type SandboxSpec,
  type Session,
  type WorkspaceEvent,
  type WorkspaceMount,
  type WorkspaceSpec,
} from "@agentfense/server";
