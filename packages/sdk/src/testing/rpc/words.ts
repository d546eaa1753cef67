import type { Rule } from "@agentfense/permission";
import { ChangeKind, EntryKind, VersionOrigin } from "@agentfense/protocol/codebase";
import {
  PatternType,
  Permission,
  type PermissionRule,
  type PermissionRuleSchema,
  SandboxStatus,
} from "@agentfense/protocol/common";
import { NetworkMode, SyncMode } from "@agentfense/protocol/sandbox";
import { Role } from "@agentfense/protocol/system";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type * as codebases from "../codebases/codebase.ts";
import { invalid } from "../faults.ts";
import type { Change } from "../sandboxes/changes.ts";
import type { MockSandbox, SandboxFacts } from "../sandboxes/sandbox.ts";
import { wordFor } from "./fields.ts";

// Our words and the contract's numbers, side by side. Zero is "not given" in all of them.

export const PERMISSIONS = {
  none: Permission.NONE,
  view: Permission.VIEW,
  read: Permission.READ,
  write: Permission.WRITE,
} as const satisfies Record<Rule["permission"], Permission>;

const PATTERN_TYPES = {
  glob: PatternType.GLOB,
  directory: PatternType.DIRECTORY,
  file: PatternType.FILE,
} as const satisfies Record<NonNullable<Rule["type"]>, PatternType>;

export const STATUSES = {
  pending: SandboxStatus.PENDING,
  running: SandboxStatus.RUNNING,
  stopped: SandboxStatus.STOPPED,
} as const satisfies Record<MockSandbox["status"], SandboxStatus>;

export const NETWORKS = {
  none: NetworkMode.NONE,
  private: NetworkMode.PRIVATE,
  host: NetworkMode.HOST,
} as const satisfies Record<SandboxFacts["network"], NetworkMode>;

export const SYNC_MODES = {
  "on-exec": SyncMode.ON_EXEC,
  manual: SyncMode.MANUAL,
  never: SyncMode.NEVER,
} as const satisfies Record<SandboxFacts["sync"], SyncMode>;

export const VERSION_ORIGINS = {
  upload: VersionOrigin.UPLOAD,
  sync: VersionOrigin.SYNC,
  rollback: VersionOrigin.ROLLBACK,
  delete: VersionOrigin.DELETE,
  rename: VersionOrigin.RENAME,
} as const satisfies Record<codebases.VersionOrigin, VersionOrigin>;

export const CHANGE_KINDS = {
  added: ChangeKind.ADDED,
  modified: ChangeKind.MODIFIED,
  deleted: ChangeKind.DELETED,
  renamed: ChangeKind.RENAMED,
} as const satisfies Record<Change["kind"], ChangeKind>;

export const ENTRY_KINDS = {
  file: EntryKind.FILE,
  directory: EntryKind.DIRECTORY,
  symlink: EntryKind.SYMLINK,
} as const satisfies Record<Change["type"], EntryKind>;

export const ROLES = { admin: Role.ADMIN, user: Role.USER, "read-only": Role.READ_ONLY } as const;

/** A level that is missing or unknown is refused with the rule's index. */
export function rulesOf(permissions: readonly PermissionRule[]): Rule[] {
  return permissions.map((message, index) => {
    const at = `permissions[${index}]`;
    const permission = wordFor(PERMISSIONS, message.permission, `${at}: permission`);
    if (permission === undefined) {
      throw invalid(`${at}: permission is required: none, view, read or write`, { index: String(index) });
    }
    // Old clients say "glob" for every pattern, so that only the other two types are their intent.
    const asked = message.type === PatternType.GLOB ? 0 : message.type;
    const type = wordFor(PATTERN_TYPES, asked, `${at}: type`);
    const { pattern, priority } = message;
    return { pattern, permission, priority, ...(type === undefined ? {} : { type }) };
  });
}

export function ruleMessage(rule: Rule): MessageInitShape<typeof PermissionRuleSchema> {
  return {
    pattern: rule.pattern,
    type: rule.type === undefined ? PatternType.UNSPECIFIED : PATTERN_TYPES[rule.type],
    permission: PERMISSIONS[rule.permission],
    priority: rule.priority ?? 0,
  };
}
