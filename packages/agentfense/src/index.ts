// What the command line is made of, for programs that mount a workspace themselves.

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
  listChanges,
  MountHost,
  type WorkspaceEvent,
  type WorkspaceMount,
  type WorkspaceSpec,
} from "@agentfense/server";
