import { checkImageName } from "../../isolation/docker/image-name.ts";
import { validateLimits } from "../../isolation/limits/limits.ts";
import { type SecretWithValue, withSecretHosts } from "../../isolation/network/secrets.ts";
import type { SandboxLimits } from "../../isolation/sandbox/api.ts";
import { checkSecrets, isWorkspaceHome } from "../../isolation/sandbox/specification.ts";
import { newSandboxId } from "../ids.ts";
import { invalid, RuntimeError } from "../runtime-error.ts";
import type {
  CodebaseRecord,
  NetworkName,
  ResourceRecord,
  RuntimeName,
  SandboxRecord,
  SyncMode,
} from "../store/store.ts";
import type { CreateSandboxRequest } from "./api.ts";
import { requireWithin, storedNetworkRules } from "./network.ts";
import type { SandboxDefaults, SandboxesOptions } from "./options.ts";
import { toRuntimeError } from "./refusals.ts";
import { checkLabels, checkTerms, storedRules } from "./request.ts";

export interface CreationTerms extends Pick<SandboxesOptions, "runtimes" | "fallbackRuntime" | "allowedBy"> {
  readonly defaults: SandboxDefaults;
  readonly nowMs: number;
}

/** What is asked for, with what was looked up for it. */
export interface AdmittedRequest extends Omit<CreateSandboxRequest, "secrets"> {
  readonly secrets: readonly SecretWithValue[];
}

/** The record of a new sandbox, its secrets not sealed yet, or why there cannot be one. Nothing is looked up but what is given. */
export function newSandbox(request: AdmittedRequest, codebase: CodebaseRecord, terms: CreationTerms): SandboxRecord {
  const { defaults, nowMs } = terms;
  const rules = storedRules(request);
  checkLabels(request.labels);
  checkTerms({ env: request.env });
  const runtime = chooseRuntime(request.runtime, terms);
  const expiresInMs = chooseExpiry(request.expiresInMs, defaults);
  return {
    id: newSandboxId(),
    // An admin may make a sandbox on anybody's codebase; it is that owner's all the same.
    ownerId: codebase.ownerId,
    codebaseId: codebase.id,
    codebaseVersion: checkVersion(request.codebaseVersion),
    rules,
    status: "PENDING",
    statusReason: "",
    labels: { ...request.labels },
    runtime,
    image: chooseImage(request.image, runtime),
    ...chooseNetwork(request, runtime, terms),
    secrets: [],
    sync: chooseSync(request.sync, request.codebaseVersion, defaults.sync),
    revocable: request.revocable,
    home: request.home,
    workspaceHome: checkWorkspaceHome(request.workspaceHome),
    pauseAtExpiry: request.pauseAtExpiry,
    resources: chooseResources(request.resources, defaults),
    env: { ...request.env },
    idlePauseMs: chooseIdlePause(request.idlePauseMs, defaults),
    lastProcessNumber: 0,
    createdAtMs: nowMs,
    ...(expiresInMs === undefined ? {} : { expiresAtMs: nowMs + expiresInMs }),
  };
}

/** How to be allowed more, in the words of whoever allows it. */
const REMEDIES = {
  operator: {
    place: "on this server",
    runtime: () =>
      "another one is enabled by runtime.types, or replaced by runtime.fallback, in the server's configuration",
    network: (network: NetworkName, runtime: RuntimeName) =>
      runtime === "docker"
        ? `set runtime.docker.enable_networking and add ${network} to runtime.networks in the server's configuration`
        : `add ${network} to runtime.networks in the server's configuration`,
  },
  program: {
    place: "in this engine",
    runtime: (runtime: RuntimeName) => `add ${runtime} to the option runtimes of the engine`,
    network: (network: NetworkName) => `add ${network} to the option networks of the engine`,
  },
  environment: {
    place: "on the private server",
    runtime: (runtime: RuntimeName) => `add ${runtime} to AGENTFENSE_RUNTIME_TYPES before it starts`,
    network: (network: NetworkName) =>
      `set AGENTFENSE_RUNTIME_NETWORKS=none,filtered,private,${network} before it starts`,
  },
} as const;

function chooseRuntime(
  asked: RuntimeName | undefined,
  { runtimes, fallbackRuntime, allowedBy = "operator" }: CreationTerms,
): RuntimeName {
  if (asked === undefined) return runtimes[0];
  if (runtimes.includes(asked)) return asked;
  if (fallbackRuntime !== undefined && runtimes.includes(fallbackRuntime)) return fallbackRuntime;
  throw new RuntimeError("RUNTIME_UNAVAILABLE", `the runtime ${asked} is not available ${REMEDIES[allowedBy].place}`, {
    details: { runtime: asked, available: runtimes.join(",") },
    hint: `it has ${runtimes.join(", ")}; ${REMEDIES[allowedBy].runtime(asked)}`,
  });
}

/** Clients of the earlier server send an image whatever the runtime; only an engine of images has a use for it. */
function chooseImage(image: string, runtime: RuntimeName): string {
  if (image === "" || runtime !== "docker") return "";
  try {
    return checkImageName(image);
  } catch (error) {
    throw toRuntimeError(error);
  }
}

function chooseNetwork(
  { network: asked, networkList, secrets, env }: AdmittedRequest,
  runtime: RuntimeName,
  { defaults: { networks, networkAllow, docker }, allowedBy = "operator" }: CreationTerms,
): Pick<SandboxRecord, "network" | "networkRules"> {
  const { allow = [], presets = [] } = networkList;
  const hasList = allow.length + presets.length > 0;
  const network =
    asked ?? (hasList || secrets.length > 0 ? "filtered" : runtime === "docker" ? docker.network : "none");
  if (hasList && network !== "filtered") throw invalid(`the network ${network} has no list of hosts; filtered has`);
  const networkRules = storedNetworkRules(networkList, networkAllow);
  try {
    checkSecrets({ secrets, network, env });
  } catch (error) {
    throw toRuntimeError(error);
  }
  requireWithin(withSecretHosts(networkRules, secrets), networkAllow);
  const allowed = runtime === "docker" ? docker.networks : networks;
  if (network === "none" || allowed.includes(network)) return { network, networkRules };
  throw new RuntimeError(
    "RUNTIME_UNAVAILABLE",
    `the network mode ${network} is not enabled ${REMEDIES[allowedBy].place}`,
    {
      details: { network, available: ["none", ...allowed.filter((name) => name !== "none")].join(",") },
      hint: REMEDIES[allowedBy].network(network, runtime),
    },
  );
}

function chooseIdlePause(asked: number | undefined, { idlePauseMs }: SandboxDefaults): number {
  if (asked !== undefined && !(asked >= 0)) throw invalid("idle_pause must not be below 0");
  return Math.round(asked ?? idlePauseMs);
}

function checkWorkspaceHome(path: string): string {
  if (path === "" || isWorkspaceHome(path)) return path;
  throw invalid("workspace_home is /home/NAME, where NAME is a user's and not agent");
}

function chooseExpiry(expiresInMs: number | undefined, defaults: SandboxDefaults): number | undefined {
  if (expiresInMs !== undefined) return checkExpiry(expiresInMs, defaults);
  return defaults.expirationMs > 0 ? defaults.expirationMs : undefined;
}

export function checkExpiry(expiresInMs: number, defaults: SandboxDefaults): number {
  if (!(expiresInMs > 0)) throw invalid("expires_in must be above 0");
  if (expiresInMs > defaults.maxExpirationMs) {
    throw invalid(`expires_in is at most ${Math.floor(defaults.maxExpirationMs / 1000)} s`);
  }
  return expiresInMs;
}

function chooseSync(asked: SyncMode | undefined, version: number, byDefault: SyncMode): SyncMode {
  if (version === 0) return asked ?? byDefault;
  if (asked === "on-exec") throw invalid("a sandbox that is pinned to a version cannot sync to its codebase");
  return asked ?? "never";
}

function checkVersion(version: number): number {
  if (Number.isSafeInteger(version) && version >= 0) return version;
  throw invalid("codebase_version is a version of the codebase, or 0 for the newest");
}

/** What each resource is called in requests, and in the server's configuration. */
export const RESOURCE_FIELDS = {
  memoryBytes: "memory_bytes",
  cpuQuota: "cpu_quota",
  cpuShares: "cpu_shares",
  pidsLimit: "pids_limit",
  diskBytes: "disk_bytes",
  diskFiles: "disk_files",
  outputBytes: "output_bytes",
} as const satisfies Record<keyof ResourceRecord, string>;

function chooseResources(asked: ResourceRecord, { resources, maxResources }: SandboxDefaults): ResourceRecord {
  const chosen: { -readonly [Name in keyof ResourceRecord]: number } = {};
  for (const [name, field] of Object.entries(RESOURCE_FIELDS) as [keyof ResourceRecord, string][]) {
    const most = maxResources[name];
    const value = asked[name];
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) {
      throw invalid(`resources.${field} must be a whole number above 0`);
    }
    if (value !== undefined && most !== undefined && value > most) {
      throw new RuntimeError("LIMIT_EXCEEDED", `resources.${field} is at most ${most} on this server`, {
        details: { field, limit: String(most) },
      });
    }
    const effective = value ?? least(resources[name], most);
    if (effective !== undefined) chosen[name] = effective;
  }
  try {
    validateLimits(limitsOf(chosen));
  } catch (error) {
    throw toRuntimeError(error);
  }
  return chosen;
}

/** As isolation has them. */
export function limitsOf({ pidsLimit, ...limits }: ResourceRecord): SandboxLimits {
  return { ...limits, ...(pidsLimit === undefined ? {} : { pids: pidsLimit }) };
}

function least(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}
