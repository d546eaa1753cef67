import type {
  CreateSandboxRequest,
  ExplainPathResponse_CandidateSchema,
  ResourceLimits,
  SandboxSchema,
} from "@agentfense/protocol/sandbox";
import { RuntimeType } from "@agentfense/protocol/sandbox";
import { NETWORKS, PERMISSIONS, SANDBOX_STATUSES, SYNC_MODES } from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { invalid } from "../faults.ts";
import { workspacePath } from "../files/paths.ts";
import { networkRulesOf } from "../sandboxes/network.ts";
import { checkEnvironment } from "../sandboxes/requests.ts";
import { explain, type RuleStanding, storedRules } from "../sandboxes/rules.ts";
import type { MockSandbox, SandboxFacts } from "../sandboxes/sandbox.ts";
import type { World } from "../world.ts";
import { count, durationMs, pageOf, required, timestampMessage, wordFor } from "./fields.ts";
import { ruleMessage, rulesOf } from "./rules.ts";
import type { SandboxHandlers } from "./sandbox-parts.ts";

/** What one does to a sandbox. */
export function lifecycleHandlers(
  world: World,
): SandboxHandlers<
  | "createSandbox"
  | "getSandbox"
  | "listSandboxes"
  | "startSandbox"
  | "stopSandbox"
  | "pauseSandbox"
  | "resumeSandbox"
  | "destroySandbox"
  | "updatePermissions"
  | "updateNetwork"
  | "explainPath"
  | "listHomes"
  | "deleteHome"
> {
  return {
    async createSandbox(request) {
      const rules = rulesOf(request.permissions);
      const codebase = world.codebase(required(request.codebaseId, "codebase_id"));
      const facts = factsOf(request, storedRules(rules, request.preset));
      codebase.resolve(facts.codebaseVersion);
      return sandboxMessage(world.createSandbox(codebase, facts));
    },

    async getSandbox({ sandboxId }) {
      return sandboxMessage(world.sandbox(sandboxId));
    },

    async listSandboxes({ codebaseId, ownerId, status: number, labels, ...page }) {
      // ERROR is a state that no sandbox of the mock gets into.
      const status = number === 4 ? "error" : wordFor(SANDBOX_STATUSES, number, "status");
      const isListed = (sandbox: MockSandbox) =>
        (codebaseId === "" || codebaseId === sandbox.codebase.id) &&
        (ownerId === "" || ownerId === sandbox.ownerId) &&
        (status === undefined || status === sandbox.status) &&
        Object.entries(labels).every(([name, value]) => sandbox.facts.labels[name] === value);
      const { items, nextPageToken } = pageOf([...world.sandboxes.values()].filter(isListed), page);
      return { sandboxes: items.map(sandboxMessage), nextPageToken };
    },

    async startSandbox({ sandboxId }) {
      const sandbox = world.sandbox(sandboxId);
      world.startSandbox(sandbox);
      return sandboxMessage(sandbox);
    },

    async stopSandbox({ sandboxId }) {
      const sandbox = world.sandbox(sandboxId);
      world.stopSandbox(sandbox);
      return sandboxMessage(sandbox);
    },

    async pauseSandbox({ sandboxId }) {
      const sandbox = world.sandbox(sandboxId);
      sandbox.pause();
      return sandboxMessage(sandbox);
    },

    async resumeSandbox({ sandboxId }) {
      const sandbox = world.sandbox(sandboxId);
      sandbox.resume();
      return sandboxMessage(sandbox);
    },

    async destroySandbox({ sandboxId }) {
      world.destroySandbox(world.sandbox(sandboxId));
      return {};
    },

    async listHomes({ ownerId }) {
      const homes = [...world.homes.values()].filter((home) => ownerId === "" || ownerId === home.ownerId);
      return {
        homes: homes.map(({ name, ownerId }) => ({ name, ownerId, sandboxId: world.userOf(name, ownerId)?.id ?? "" })),
      };
    },

    async deleteHome({ name, ownerId }) {
      world.deleteHome(required(name, "name"), ownerId);
      return {};
    },

    async updatePermissions({ sandboxId, permissions, preset }) {
      required(sandboxId, "sandbox_id");
      const rules = storedRules(rulesOf(permissions), preset);
      const sandbox = world.sandbox(sandboxId);
      sandbox.rules = rules;
      sandbox.tell("permissions_updated", { data: { permissions: rules } });
      return sandboxMessage(sandbox);
    },

    async updateNetwork({ sandboxId, networkRules: rules }) {
      const sandbox = world.sandbox(required(sandboxId, "sandbox_id"));
      const { network } = sandbox.facts;
      if (network !== "filtered") throw invalid(`the network ${network} has no list of hosts; filtered has`);
      sandbox.networkRules = networkRulesOf(rules);
      sandbox.tell("network_updated", { data: { network_rules: sandbox.networkRules } });
      return sandboxMessage(sandbox);
    },

    async explainPath({ sandboxId, path }) {
      const { policy } = world.sandbox(sandboxId);
      const answer = explain(policy, workspacePath(required(path, "path")));
      return {
        path: answer.path,
        permission: PERMISSIONS[answer.permission],
        ...(answer.deciding === undefined ? {} : { deciding: standingMessage(answer.deciding) }),
        losing: answer.losing.map(standingMessage),
        explanation: answer.text,
      };
    },
  };
}

function factsOf(request: CreateSandboxRequest, rules: SandboxFacts["rules"]): SandboxFacts {
  checkEnvironment(request.env);
  const codebaseVersion = count(request.codebaseVersion, "codebase_version");
  const sync = wordFor(SYNC_MODES, request.sync, "sync");
  if (codebaseVersion > 0 && sync === "on-exec") {
    throw invalid("a sandbox that is pinned to a version cannot sync to its codebase");
  }
  return {
    codebaseVersion,
    rules,
    labels: { ...request.labels },
    env: { ...request.env },
    sync: sync ?? (codebaseVersion > 0 ? "never" : "on-exec"),
    ...networkOf(request),
    revocable: request.revocable,
    idlePauseMs: durationMs(request.idlePause, "idle_pause") ?? 0,
    home: request.home,
    resources: resourcesOf(request.resources),
    expiresInMs: durationMs(request.expiresIn, "expires_in"),
  };
}

function networkOf(request: CreateSandboxRequest): Pick<SandboxFacts, "network" | "networkRules"> {
  const networkRules = networkRulesOf(request.networkRules);
  const network = wordFor(NETWORKS, request.network, "network") ?? (networkRules.length > 0 ? "filtered" : "none");
  if (networkRules.length === 0 || network === "filtered") return { network, networkRules };
  throw invalid(`the network ${network} has no list of hosts; filtered has`);
}

const LIMITS = ["memoryBytes", "cpuQuota", "cpuShares", "pidsLimit", "diskBytes", "diskFiles", "outputBytes"] as const;

function resourcesOf(message: ResourceLimits | undefined): Record<string, number> {
  const given = LIMITS.filter((limit) => (message?.[limit] ?? 0n) !== 0n);
  return Object.fromEntries(given.map((limit) => [limit, count(message![limit], `resources.${limit}`)]));
}

/** Whatever runtime was asked for, it is this one. */
function sandboxMessage(sandbox: MockSandbox): MessageInitShape<typeof SandboxSchema> {
  const { facts } = sandbox;
  const resources = Object.entries(facts.resources).map(([limit, value]) => [limit, BigInt(value)]);
  return {
    id: sandbox.id,
    codebaseId: sandbox.codebase.id,
    permissions: sandbox.rules.map(ruleMessage),
    status: SANDBOX_STATUSES[sandbox.status],
    labels: { ...facts.labels },
    createdAt: timestampMessage(sandbox.createdAtMs),
    startedAt: timestampMessage(sandbox.startedAtMs),
    stoppedAt: timestampMessage(sandbox.stoppedAtMs),
    expiresAt: timestampMessage(sandbox.expiresAtMs),
    runtime: RuntimeType.MOCK,
    ...(resources.length === 0 ? {} : { resources: Object.fromEntries(resources) }),
    ownerId: sandbox.ownerId,
    sync: SYNC_MODES[facts.sync],
    network: NETWORKS[facts.network],
    networkRules: sandbox.networkRules.map(({ host, ports, methods, paths }) => ({
      ...{ host, ports: [...ports] },
      ...{ methods: [...methods], paths: [...paths] },
    })),
    codebaseVersion: BigInt(facts.codebaseVersion),
    revocable: facts.revocable,
    ...(facts.idlePauseMs === 0 ? {} : { idlePause: durationFromMs(facts.idlePauseMs) }),
    home: facts.home,
  };
}

function standingMessage(one: RuleStanding): MessageInitShape<typeof ExplainPathResponse_CandidateSchema> {
  return { index: one.index, rule: ruleMessage(one.rule), reason: one.reason };
}
