import { PatternType, type PermissionRule, type PermissionRuleSchema } from "@agentfense/protocol/common";
import type {
  CreateSandboxRequest as CreateSandboxMessage,
  ResourceLimits,
  ResourceLimitsSchema,
  SandboxSchema,
  SessionSchema,
} from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CreateSandboxRequest } from "../../../runtime/sandboxes/api.ts";
import type { ResourceRecord, SandboxRecord, SessionRecord } from "../../../runtime/store/store.ts";
import {
  NETWORKS,
  PATTERN_TYPES,
  PERMISSIONS,
  RUNTIMES,
  type Rule,
  SANDBOX_STATUSES,
  SESSION_STATUSES,
  SYNC_MODES,
  wordFor,
} from "./enums.ts";
import {
  count,
  durationMessage,
  durationMs,
  given,
  invalid,
  optionalCount,
  required,
  timestampMessage,
} from "./fields.ts";

export function createSandboxRequestOf(message: CreateSandboxMessage): CreateSandboxRequest {
  return {
    codebaseId: required(message.codebaseId, "codebase_id"),
    codebaseVersion: count(message.codebaseVersion, "codebase_version"),
    rules: rulesOf(message.permissions),
    preset: message.preset,
    labels: message.labels,
    image: message.image,
    resources: resourcesOf(message.resources),
    revocable: message.revocable,
    env: message.env,
    home: message.home,
    ...given({
      expiresInMs: durationMs(message.expiresIn, "expires_in"),
      // Zero is an answer here: not even by the server's default.
      idlePauseMs: message.idlePause && (durationMs(message.idlePause, "idle_pause") ?? 0),
      runtime: wordFor(RUNTIMES, message.runtime, "runtime"),
      sync: wordFor(SYNC_MODES, message.sync, "sync"),
      network: wordFor(NETWORKS, message.network, "network"),
    }),
  };
}

/** The variables it was made with are not told again: they often are secrets. */
export function sandboxMessage(record: SandboxRecord): MessageInitShape<typeof SandboxSchema> {
  return {
    id: record.id,
    codebaseId: record.codebaseId,
    permissions: record.rules.map(ruleMessage),
    status: SANDBOX_STATUSES[record.status],
    labels: { ...record.labels },
    createdAt: timestampMessage(record.createdAtMs),
    startedAt: timestampMessage(record.startedAtMs),
    stoppedAt: timestampMessage(record.stoppedAtMs),
    expiresAt: timestampMessage(record.expiresAtMs),
    runtime: RUNTIMES[record.runtime],
    image: record.image,
    resources: resourcesMessage(record.resources),
    ownerId: record.ownerId,
    sync: SYNC_MODES[record.sync],
    network: NETWORKS[record.network],
    codebaseVersion: BigInt(record.codebaseVersion),
    statusReason: record.statusReason,
    revocable: record.revocable,
    idlePause: record.idlePauseMs === 0 ? undefined : durationMessage(record.idlePauseMs),
    home: record.home,
  };
}

export function sessionMessage(record: SessionRecord): MessageInitShape<typeof SessionSchema> {
  return {
    id: record.id,
    sandboxId: record.sandboxId,
    status: SESSION_STATUSES[record.status],
    shell: record.shell,
    createdAt: timestampMessage(record.createdAtMs),
    closedAt: timestampMessage(record.closedAtMs),
    closeReason: record.closeReason,
  };
}

/** Our name, and the contract's for error texts. */
const LIMIT_NAMES = {
  memoryBytes: "memory_bytes",
  cpuQuota: "cpu_quota",
  cpuShares: "cpu_shares",
  pidsLimit: "pids_limit",
  diskBytes: "disk_bytes",
  diskFiles: "disk_files",
  outputBytes: "output_bytes",
} as const satisfies Record<keyof ResourceRecord, string>;

const LIMITS = Object.keys(LIMIT_NAMES) as (keyof ResourceRecord)[];

function resourcesOf(message: ResourceLimits | undefined): ResourceRecord {
  if (message === undefined) return {};
  return given(
    Object.fromEntries(
      LIMITS.map((limit) => [limit, optionalCount(message[limit], `resources.${LIMIT_NAMES[limit]}`)]),
    ) as Record<keyof ResourceRecord, number | undefined>,
  );
}

/** Absent when no limit was asked for. */
function resourcesMessage(record: ResourceRecord): MessageInitShape<typeof ResourceLimitsSchema> | undefined {
  const asked = LIMITS.filter((limit) => record[limit] !== undefined);
  if (asked.length === 0) return undefined;
  return Object.fromEntries(asked.map((limit) => [limit, BigInt(record[limit] ?? 0)]));
}

/**
 * The rules of a request. A level that is missing or unknown is refused with the rule's index: taken for "none" it would hide
 * a mistake, taken for anything else a secret would show.
 */
export function rulesOf(permissions: readonly PermissionRule[]): Rule[] {
  return permissions.map((message, index) => {
    const at = `permissions[${index}]`;
    const permission = wordFor(PERMISSIONS, message.permission, `${at}: permission`);
    if (permission === undefined) {
      throw invalid(`${at}: permission is required: none, view, read or write`, { index: String(index) });
    }
    return {
      pattern: message.pattern,
      permission,
      priority: message.priority,
      ...given({ type: typeOf(message, at) }),
    };
  });
}

/** Clients of the earlier server say "glob" for every pattern, so that only the other two types are their intent. */
function typeOf(message: PermissionRule, at: string): Rule["type"] {
  return message.type === PatternType.GLOB ? undefined : wordFor(PATTERN_TYPES, message.type, `${at}: type`);
}

export function ruleMessage(rule: Rule): MessageInitShape<typeof PermissionRuleSchema> {
  return {
    pattern: rule.pattern,
    type: rule.type === undefined ? PatternType.UNSPECIFIED : PATTERN_TYPES[rule.type],
    permission: PERMISSIONS[rule.permission],
    priority: rule.priority ?? 0,
  };
}
