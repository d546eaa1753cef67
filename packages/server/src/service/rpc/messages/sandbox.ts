import * as common from "@agentfense/protocol/common";
import * as wire from "@agentfense/protocol/sandbox";
import * as words from "@agentfense/protocol/words";
import type { DescField, MessageInitShape } from "@bufbuild/protobuf";
import type * as runtime from "../../../runtime/sandboxes/api.ts";
import type * as store from "../../../runtime/store/store.ts";
import { count, durationMessage, durationMs, given, invalid, messageOf, optionalCount, wordFor } from "./fields.ts";

type Rule = store.SandboxRecord["rules"][number];
type NetworkRule = store.SandboxRecord["networkRules"][number];

export const SANDBOX_STATUSES = {
  PENDING: common.SandboxStatus.PENDING,
  RUNNING: common.SandboxStatus.RUNNING,
  PAUSED: common.SandboxStatus.PAUSED,
  STOPPED: common.SandboxStatus.STOPPED,
  ERROR: common.SandboxStatus.ERROR,
} as const satisfies Record<store.SandboxRecordStatus, number>;

export function createSandboxRequestOf(message: wire.CreateSandboxRequest): runtime.CreateSandboxRequest {
  return {
    codebaseId: message.codebaseId,
    codebaseVersion: count(message.codebaseVersion, "codebase_version"),
    rules: rulesOf(message.permissions),
    preset: message.preset,
    labels: message.labels,
    image: message.image,
    resources: resourcesOf(message.resources),
    revocable: message.revocable,
    env: message.env,
    home: message.home,
    workspaceHome: message.workspaceHome,
    pauseAtExpiry: message.pauseAtExpiry,
    expiresInMs: durationMs(message.expiresIn, "expires_in"),
    // Zero is an answer here: not even by the server's default.
    idlePauseMs: message.idlePause && (durationMs(message.idlePause, "idle_pause") ?? 0),
    runtime: wordFor(words.RUNTIMES, message.runtime, "runtime"),
    sync: wordFor(words.SYNC_MODES, message.sync, "sync"),
    network: wordFor(words.NETWORKS, message.network, "network"),
    networkList: networkListOf(message),
    secrets: message.secrets.map(({ name, value, hosts, place }) => ({ name, value, hosts, place })),
  };
}

/** A host that comes without ports may carry them: then it is the whole rule as people write it. */
export function networkListOf({
  networkRules,
  networkPresets,
}: Pick<wire.UpdateNetworkRequest, "networkRules" | "networkPresets">): runtime.CreateSandboxRequest["networkList"] {
  const listed = (items: readonly unknown[]) => (items.length === 0 ? undefined : items);
  const allow = networkRules.map(({ host, ports, methods, paths, addresses }) =>
    given({
      ...{ host, ports: listed(ports), methods: listed(methods), paths: listed(paths), addresses: listed(addresses) },
    }),
  );
  return { allow, presets: networkPresets };
}

/** The variables it was made with are not told again: they often are secrets. */
export function sandboxMessage(record: store.SandboxRecord): MessageInitShape<typeof wire.SandboxSchema> {
  return messageOf(wire.SandboxSchema, record, {
    permissions: record.rules.map(ruleMessage),
    status: SANDBOX_STATUSES[record.status],
    runtime: words.RUNTIMES[record.runtime],
    resources: resourcesMessage(record.resources),
    sync: words.SYNC_MODES[record.sync],
    network: words.NETWORKS[record.network],
    networkRules: record.networkRules.map(networkRuleMessage),
    secrets: record.secrets.map(({ name }) => name),
    idlePause: record.idlePauseMs === 0 ? undefined : durationMessage(record.idlePauseMs),
  });
}

export function snapshotMessage(record: store.SnapshotRecord): MessageInitShape<typeof wire.SnapshotSchema> {
  return messageOf(wire.SnapshotSchema, record, {});
}

/** Nothing of the value, sealed or not. */
export function secretMessage(record: store.SecretRecord): MessageInitShape<typeof wire.SecretSchema> {
  return messageOf(wire.SecretSchema, record, { hosts: [...record.hosts] });
}

function networkRuleMessage({ host, ports, methods = [], paths = [], addresses = [] }: NetworkRule) {
  return { host, ports: [...ports], methods: [...methods], paths: [...paths], addresses: [...addresses] };
}

export function sessionMessage(record: store.SessionRecord): MessageInitShape<typeof wire.SessionSchema> {
  return messageOf(wire.SessionSchema, record, { status: common.SessionStatus[record.status] });
}

const LIMITS = wire.ResourceLimitsSchema.fields as readonly (DescField & { localName: keyof store.ResourceRecord })[];

function resourcesOf(message: wire.ResourceLimits | undefined): store.ResourceRecord {
  if (message === undefined) return {};
  const limits = LIMITS.map(({ localName, name }) => [
    localName,
    optionalCount(message[localName], `resources.${name}`),
  ]);
  return given(Object.fromEntries(limits) as Record<keyof store.ResourceRecord, number | undefined>);
}

/** Absent when no limit was asked for. */
function resourcesMessage(
  record: store.ResourceRecord,
): MessageInitShape<typeof wire.ResourceLimitsSchema> | undefined {
  const asked = LIMITS.filter(({ localName }) => record[localName] !== undefined);
  if (asked.length === 0) return undefined;
  return Object.fromEntries(asked.map(({ localName }) => [localName, BigInt(record[localName] ?? 0)]));
}

/**
 * The rules of a request. A level that is missing or unknown is refused with the rule's index: taken for "none" it would hide
 * a mistake, taken for anything else a secret would show.
 */
export function rulesOf(permissions: readonly common.PermissionRule[]): Rule[] {
  return permissions.map((message, index) => {
    const at = `permissions[${index}]`;
    const permission = wordFor(words.PERMISSIONS, message.permission, `${at}: permission`);
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
function typeOf(message: common.PermissionRule, at: string): Rule["type"] {
  return message.type === common.PatternType.GLOB
    ? undefined
    : wordFor(words.PATTERN_TYPES, message.type, `${at}: type`);
}

function ruleMessage(rule: Rule): MessageInitShape<typeof common.PermissionRuleSchema> {
  return {
    pattern: rule.pattern,
    type: rule.type === undefined ? common.PatternType.UNSPECIFIED : words.PATTERN_TYPES[rule.type],
    permission: words.PERMISSIONS[rule.permission],
    priority: rule.priority ?? 0,
  };
}

export function changeMessage(change: runtime.SandboxChange): MessageInitShape<typeof wire.ChangeSchema> {
  return {
    kind: words.CHANGE_KINDS[change.kind],
    path: change.path,
    oldPath: change.oldPath,
    type: words.CHANGE_TYPES[change.type],
    size: BigInt(Math.trunc(change.size)),
    sensitive: change.sensitive,
    ...(change.folded && { folded: change.folded }),
  };
}

/** A text that no message can hold comes in several. */
export function* diffMessages(
  diff: runtime.FileDiff,
  roomBytes: number,
): Generator<MessageInitShape<typeof wire.FileDiffSchema>> {
  const { unified, binary } = diff;
  const change = changeMessage(diff.change);
  // A character takes three bytes at most, of a pair four for two.
  const room = Math.floor(roomBytes / 3);
  let start = 0;
  while (unified.length - start > room) {
    const splitsPair = /[\ud800-\udbff]/.test(unified.charAt(start + room - 1));
    const end = start + room - (splitsPair ? 1 : 0);
    yield { change, unified: unified.slice(start, end), binary, more: true };
    start = end;
  }
  yield { change, unified: unified.slice(start), binary, more: diff.more };
}

export function outcomeMessage(
  outcome: runtime.ApplyOutcome,
): MessageInitShape<typeof wire.ApplyChangesResponse_OutcomeSchema> {
  return messageOf(wire.ApplyChangesResponse_OutcomeSchema, outcome, {
    change: changeMessage(outcome.change),
    sensitive: outcome.change.sensitive,
  });
}

export function explanationMessage(
  answer: runtime.Explanation,
): MessageInitShape<typeof wire.ExplainPathResponseSchema> {
  return {
    path: answer.path,
    permission: words.PERMISSIONS[answer.permission],
    ...(answer.deciding === undefined ? {} : { deciding: candidateMessage(answer.deciding) }),
    losing: answer.losing.map(candidateMessage),
    explanation: answer.text,
  };
}

function candidateMessage(
  candidate: runtime.Explanation["losing"][number],
): MessageInitShape<typeof wire.ExplainPathResponse_CandidateSchema> {
  return { index: candidate.index, rule: ruleMessage(candidate.rule), reason: candidate.reason };
}
