import { getPreset, PresetError, parseRules, type Rule, RuleError } from "@agentfense/permission";
import { PatternType, type PermissionRule, type PermissionRuleSchema } from "@agentfense/protocol/common";
import type {
  CreateSandboxRequestSchema,
  ExplainPathResponse,
  ExplainPathResponse_Candidate,
  NetworkRule as NetworkRuleMessage,
  ResourceLimits as ResourceLimitsMessage,
  ResourceLimitsSchema,
  Sandbox,
  Secret,
  Session,
  Snapshot,
} from "@agentfense/protocol/sandbox";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { SandboxError } from "../../errors.ts";
import { type MembersOf, requireKnownMembers } from "../../model/known-members.ts";
import type {
  NetworkList,
  NetworkRule,
  ResourceLimits,
  RuleOptions,
  SandboxOptions,
  SecretPlace,
} from "../../model/options.ts";
import type {
  PathExplanation,
  RuleCandidate,
  SandboxInfo,
  SecretInfo,
  SessionInfo,
  SnapshotInfo,
} from "../../model/records.ts";
import type { CreateSandboxRequest } from "../../model/requests.ts";
import { secretFields } from "../../secrets/values.ts";
import {
  bigintOf,
  dateOf,
  datesOf,
  durationOf,
  invalid,
  msOf,
  NETWORKS,
  numberFor,
  numberOf,
  PATTERN_TYPES,
  PERMISSIONS,
  RUNTIMES,
  SANDBOX_STATUSES,
  SESSION_STATUSES,
  SYNC_MODES,
  wordOf,
} from "./values.ts";

export async function createSandboxMessage(
  request: CreateSandboxRequest,
): Promise<MessageInitShape<typeof CreateSandboxRequestSchema>> {
  return {
    codebaseId: request.codebaseId,
    codebaseVersion: bigintOf(request.codebaseVersion, "codebaseVersion"),
    permissions: rulesFor(request),
    labels: { ...request.labels },
    env: { ...request.env },
    image: request.image ?? "",
    revocable: request.revocable ?? false,
    home: request.home ?? "",
    workspaceHome: request.workspaceHome ?? "",
    pauseAtExpiry: request.pauseAtExpiry ?? false,
    runtime: numberFor(RUNTIMES, request.runtime, "runtime"),
    ...networkFields(request.network),
    secrets: await secretFields(request.secrets),
    sync: numberFor(SYNC_MODES, request.sync, "sync"),
    ...(request.resources === undefined ? {} : { resources: resourcesMessage(request.resources) }),
    ...(request.idlePauseMs === undefined ? {} : { idlePause: idlePauseMessage(request.idlePauseMs) }),
    ...(request.expiresInMs === undefined ? {} : { expiresIn: durationOf(request.expiresInMs, "expiresInMs") }),
  };
}

/** What is made of another's work has its rules unless it is given some: no default comes between. */
export async function inheritingMessage(
  options: SandboxOptions,
): Promise<MessageInitShape<typeof CreateSandboxRequestSchema>> {
  const { preset, permissions } = options;
  const hasRules = preset !== undefined || permissions !== undefined;
  const message = await createSandboxMessage({ ...options, codebaseId: "" });
  return hasRules ? message : { ...message, permissions: [] };
}

/** Here zero is an answer: never, whatever the server's default. */
function idlePauseMessage(ms: number): Duration {
  return ms === 0 ? create(DurationSchema) : durationOf(ms, "idlePauseMs");
}

const RESOURCES: MembersOf<ResourceLimits> = {
  ...{ memoryBytes: true, cpuQuota: true, cpuShares: true, pidsLimit: true },
  ...{ diskBytes: true, diskFiles: true, outputBytes: true },
};
const LIMITS = Object.keys(RESOURCES) as (keyof ResourceLimits)[];

/** 0 would mean the server's default on the wire, and nothing of the kind to whoever wrote it. */
function resourcesMessage(resources: ResourceLimits): MessageInitShape<typeof ResourceLimitsSchema> {
  requireKnownMembers(resources, RESOURCES, "resources");
  const message: { -readonly [Name in keyof ResourceLimits]?: bigint } = {};
  for (const limit of LIMITS) {
    const value = resources[limit];
    if (value === 0) throw invalid(`resources.${limit} must be above 0; leave it out for the server's default`);
    if (value !== undefined) message[limit] = bigintOf(value, `resources.${limit}`);
  }
  return message;
}

function resourcesOf(message: ResourceLimitsMessage | undefined): ResourceLimits {
  const resources: { -readonly [Name in keyof ResourceLimits]: ResourceLimits[Name] } = {};
  for (const limit of LIMITS) {
    if (message !== undefined && message[limit] !== 0n) resources[limit] = numberOf(message[limit]);
  }
  return resources;
}

export function sandboxOf(message: Sandbox): SandboxInfo {
  const { startedAt, stoppedAt, expiresAt } = message;
  return {
    id: message.id,
    codebaseId: message.codebaseId,
    ownerId: message.ownerId,
    status: wordOf(SANDBOX_STATUSES, message.status, "status"),
    statusReason: message.statusReason,
    permissions: message.permissions.map(ruleOf),
    labels: { ...message.labels },
    runtime: wordOf(RUNTIMES, message.runtime, "runtime"),
    image: message.image,
    resources: resourcesOf(message.resources),
    network: wordOf(NETWORKS, message.network, "network"),
    networkRules: message.networkRules.map(networkRuleOf),
    secrets: [...message.secrets],
    sync: wordOf(SYNC_MODES, message.sync, "way to sync"),
    codebaseVersion: numberOf(message.codebaseVersion),
    revocable: message.revocable,
    idlePauseMs: msOf(message.idlePause),
    home: message.home,
    workspaceHome: message.workspaceHome,
    pauseAtExpiry: message.pauseAtExpiry,
    createdAt: dateOf(message.createdAt),
    ...datesOf({ startedAt, stoppedAt, expiresAt }),
  };
}

export function snapshotOf(message: Snapshot): SnapshotInfo {
  const { id, sandboxId, ownerId, codebaseId, codebaseVersion, label, createdAt } = message;
  return {
    ...{ id, sandboxId, ownerId, codebaseId, label },
    codebaseVersion: numberOf(codebaseVersion),
    createdAt: dateOf(createdAt),
  };
}

export function secretOf({ name, ownerId, hosts, place, createdAt, updatedAt }: Secret): SecretInfo {
  const times = { createdAt: dateOf(createdAt), updatedAt: dateOf(updatedAt) };
  return { name, ownerId, hosts: [...hosts], in: place as SecretPlace, ...times };
}

export function sessionOf(message: Session): SessionInfo {
  return {
    id: message.id,
    sandboxId: message.sandboxId,
    status: wordOf(SESSION_STATUSES, message.status, "status"),
    shell: message.shell,
    closeReason: message.closeReason,
    createdAt: dateOf(message.createdAt),
    ...datesOf({ closedAt: message.closedAt }),
  };
}

export function explanationOf(message: ExplainPathResponse): PathExplanation {
  return {
    path: message.path,
    permission: wordOf(PERMISSIONS, message.permission, "permission"),
    deciding: message.deciding === undefined ? undefined : candidateOf(message.deciding),
    losing: message.losing.map(candidateOf),
    text: message.explanation,
  };
}

function candidateOf({ index, rule, reason }: ExplainPathResponse_Candidate): RuleCandidate {
  if (rule === undefined) throw new SandboxError("the server left out the rule that decides", { code: "UNKNOWN" });
  return { index, rule: ruleOf(rule), reason };
}

type NetworkFields = Pick<
  MessageInitShape<typeof CreateSandboxRequestSchema>,
  "network" | "networkRules" | "networkPresets"
>;

/** What a request says of the network: a word, or a list, which means a filtered one. */
function networkFields(network: SandboxOptions["network"]): NetworkFields {
  if (typeof network !== "object") return { network: numberFor(NETWORKS, network, "network") };
  return { network: NETWORKS.filtered, ...listFields(network) };
}

const LINE: MembersOf<NetworkRule> = { host: true, ports: true, methods: true, paths: true, addresses: true };

/** The server reads a host with its ports: there is one who knows what is right. */
export function listFields(list: NetworkList) {
  requireKnownMembers(list, { allow: true, presets: true }, "the hosts of a network");
  const { allow = [], presets = [] } = list;
  const networkRules = allow.map((rule) => {
    if (typeof rule === "string") return { host: rule };
    requireKnownMembers(rule, LINE, "lines of a network's list");
    const { host, ports = [], methods = [], paths = [], addresses = [] } = rule;
    return { host, ports: [...ports], methods: [...methods], paths: [...paths], addresses: [...addresses] };
  });
  return { networkRules, networkPresets: [...presets] };
}

function networkRuleOf({ host, ports, methods, paths, addresses }: NetworkRuleMessage): NetworkRule {
  return {
    ...{ host, ports, ...(methods.length > 0 && { methods }), ...(paths.length > 0 && { paths }) },
    ...(addresses.length > 0 && { addresses }),
  };
}

const DEFAULT_PRESET = "agent-safe";
const LARGEST_INT32 = 2 ** 31 - 1;

/**
 * The rules that are meant, spelled out: presets are those of this process, so that registered ones work with any server. For
 * what absent and given mean see RuleOptions.
 */
export function rulesFor({ preset, permissions }: RuleOptions): MessageInitShape<typeof PermissionRuleSchema>[] {
  const base = preset ?? (permissions === undefined ? DEFAULT_PRESET : undefined);
  try {
    const rules = [...(base === undefined ? [] : getPreset(base)), ...(permissions ?? [])];
    return parseRules(rules).map(ruleMessage);
  } catch (error) {
    if (error instanceof PresetError || error instanceof RuleError) throw invalid(error.message, error);
    throw error;
  }
}

function ruleMessage(rule: Rule, index: number): MessageInitShape<typeof PermissionRuleSchema> {
  const { pattern, permission, type, priority = 0 } = rule;
  if (Math.abs(priority) > LARGEST_INT32) throw new RuleError(index, pattern, "its priority has more than 31 bits");
  return {
    pattern,
    permission: PERMISSIONS[permission],
    type: type === undefined ? PatternType.UNSPECIFIED : PATTERN_TYPES[type],
    priority,
  };
}

/** A rule of an answer. What is not given is absent, as in the rules that callers write. */
export function ruleOf({ pattern, permission, type, priority }: PermissionRule): Rule {
  return {
    pattern,
    permission: wordOf(PERMISSIONS, permission, "permission"),
    ...(type === PatternType.UNSPECIFIED ? {} : { type: wordOf(PATTERN_TYPES, type, "type of a pattern") }),
    ...(priority === 0 ? {} : { priority }),
  };
}
