import { resolve } from "node:path";
import type { Rule } from "@agentfense/permission";
import type { SandboxOptions } from "@agentfense/sdk";
import { networkMode, type ProjectPolicy, takenNetwork } from "@agentfense/sdk/project";
import {
  IsolationError,
  learningRules,
  networkRules,
  type SandboxLimits,
  type SandboxSpec,
  type SecretWithValue,
  withSecretHosts,
} from "@agentfense/server/isolation";
import { UsageError } from "../command-failure.ts";
import { askedNetwork } from "../network-list.ts";
import { announcePolicy, explainingPolicy, findPolicy } from "../project-policy.ts";
import { rulesFor } from "../rules.ts";
import { type ShownToolchains, toolchainsFor } from "../toolchains/workspaces.ts";
import { resolveDirectory } from "../workspace-directory.ts";
import type { SandboxValues } from "./options.ts";
import { requireDeltaApart, resolveDelta } from "./placement.ts";
import { readSecrets } from "./secrets.ts";

/** What `run` and `shell` were asked for, checked as far as that goes without making anything. */
export interface SandboxRequest {
  readonly directory: string;
  readonly rules: readonly Rule[];
  /** A short name for the rules. */
  readonly rulesLabel: string;
  readonly runtime: "bwrap" | "docker";
  /** Everything of the specification but the workspace, whose delta may still have to be made. */
  readonly spec: Omit<SandboxSpec, "workspaces" | "runtime">;
  readonly limits: SandboxLimits;
  readonly network: NonNullable<SandboxOptions["network"]>;
  /** Its list is to be learned: see learningRules. */
  readonly learns: boolean;
  /** Absent: none. */
  readonly toolchains: ShownToolchains | undefined;
  readonly allowPull: boolean;
  readonly workdir: string | undefined;
  /** Absent: it goes with the delta. */
  readonly home: string | undefined;
  readonly keptDelta: string | undefined;
  readonly apply: "never" | "success" | "always";
  /** What this machine may run or trust unasked is not written back. */
  readonly holdsExecutables: boolean;
  /** Every change is listed. */
  readonly listsAll: boolean;
}

/** What the options ask for on a directory. `preset` is the one without a word from anybody. */
export async function readSandboxRequest(
  values: SandboxValues,
  directory = ".",
  { preset }: { readonly preset?: string } = {},
) {
  const asked = {
    runtime: values.runtime,
    network: askedNetwork(values) ?? (values.learn === true ? { allow: [] } : undefined),
    env: Object.fromEntries(values.env ?? []),
    limits: askedLimits(values),
  };
  const place = await resolveDirectory(directory);
  const project = await findPolicy(place, values);
  const chosen = await rulesFor(values, project, preset);
  const { settings, taken } = await withProjectPart(asked, project);
  const secrets = await readSecrets(values, process.env);
  const { limits, env, network = secrets.length > 0 ? { allow: [] } : "none" } = settings;
  const runtime = chooseRuntime(settings.runtime ?? "bwrap", values);
  const request: SandboxRequest = {
    directory: place,
    rules: chosen.policy.rules,
    rulesLabel: chosen.label,
    runtime,
    limits,
    network,
    learns: values.learn === true,
    toolchains: usesToolchains(runtime, values) ? await toolchainsFor(place) : undefined,
    spec: {
      limits,
      ...networkSpec(network, secrets, values.learn),
      env,
      ...(values.image === undefined ? {} : { image: values.image }),
      ...(values["oci-runtime"] === undefined ? {} : { ociRuntime: values["oci-runtime"] }),
      ...(values.root === undefined ? {} : { rootDirectory: await resolveDirectory(values.root, "--root") }),
      readOnlyPaths: (values["read-only-path"] ?? []).map((path) => resolve(path)),
    },
    allowPull: values.pull === true,
    workdir: values.workdir,
    home: values.home === undefined ? undefined : resolve(values.home),
    keptDelta: values.delta === undefined ? undefined : await resolveDelta(values.delta),
    apply: values.apply ?? "never",
    holdsExecutables: values["hold-executables"] === true,
    listsAll: values.all === true,
  };
  if (request.keptDelta !== undefined) requireDeltaApart(request.directory, request.keptDelta);
  announcePolicy([...(chosen.fromProject ? ["rules"] : []), ...taken]);
  return { request, project };
}

const BELONGS_TO: readonly (readonly [option: keyof SandboxValues, runtime: SandboxRequest["runtime"]])[] = [
  ["image", "docker"],
  ["oci-runtime", "docker"],
  ["pull", "docker"],
  ["root", "bwrap"],
  ["read-only-path", "bwrap"],
  ["toolchains", "bwrap"],
];

function chooseRuntime(runtime: SandboxRequest["runtime"], values: SandboxValues): SandboxRequest["runtime"] {
  for (const [option, owner] of BELONGS_TO) {
    if (values[option] !== undefined && owner !== runtime) {
      throw new UsageError(`--${option} belongs to the runtime ${owner}; add --runtime ${owner} or leave it out`);
    }
  }
  return runtime;
}

/** A root directory has programs of its own, and an image too. */
function usesToolchains(runtime: SandboxRequest["runtime"], { toolchains, root }: SandboxValues): boolean {
  if (toolchains === "auto" && root !== undefined) throw new UsageError("give --toolchains auto or --root, not both");
  return runtime === "bwrap" && root === undefined && toolchains !== "off";
}

export function networkSpec(
  network: SandboxRequest["network"],
  secrets: readonly SecretWithValue[],
  learns = false,
): Pick<SandboxSpec, "network" | "networkRules" | "secrets"> {
  if (typeof network === "string") {
    if (secrets.length > 0) throw new UsageError(`--secret goes with the network filtered, not with ${network}`);
    if (learns) throw new UsageError(`--learn goes with the network filtered, not with ${network}`);
    return { network };
  }
  try {
    const rules = withSecretHosts(networkRules(network), secrets);
    return {
      network: "filtered",
      networkRules: learns ? learningRules(rules) : rules,
      ...(secrets.length === 0 ? {} : { secrets }),
    };
  } catch (error) {
    if (!(error instanceof IsolationError)) throw error;
    throw new UsageError([error.message, ...(error.hint === undefined ? [] : [error.hint])].join("; "));
  }
}

function askedLimits({ memory, cpus, pids, disk }: SandboxValues): SandboxLimits {
  return {
    ...(memory !== undefined && { memoryBytes: memory }),
    ...(cpus !== undefined && { cpuQuota: cpus }),
    ...(pids !== undefined && { pids }),
    ...(disk !== undefined && { diskBytes: disk }),
  };
}

/** What the command line can leave to the policy of the project. */
interface Negotiable {
  readonly runtime: SandboxRequest["runtime"] | undefined;
  readonly network: SandboxOptions["network"];
  readonly env: Readonly<Record<string, string>>;
  readonly limits: SandboxLimits;
}

/** The command line's word, and where it says nothing the project's; `taken` names what that was. */
async function withProjectPart(
  given: Negotiable,
  project: ProjectPolicy | undefined,
): Promise<{ readonly settings: Negotiable; readonly taken: readonly string[] }> {
  if (project === undefined) return { settings: given, taken: [] };
  const { pidsLimit, memoryBytes, cpuQuota, diskBytes } = project.resources ?? {};
  const limits: SandboxLimits = {
    ...(memoryBytes !== undefined && { memoryBytes }),
    ...(cpuQuota !== undefined && { cpuQuota }),
    ...(pidsLimit !== undefined && { pids: pidsLimit }),
    ...(diskBytes !== undefined && { diskBytes }),
  };
  const network = await explainingPolicy(
    () => takenNetwork(given.network, project),
    `add --network=${networkMode(project.network ?? "none")} if you agree, or --network=none to run without`,
  );
  const taken = [
    ...(given.runtime === undefined && project.runtime !== undefined ? [`runtime ${project.runtime}`] : []),
    ...(addsTo(given.limits, limits) ? ["limits"] : []),
    ...(addsTo(given.env, project.env ?? {}) ? ["env"] : []),
  ];
  const settings = {
    runtime: given.runtime ?? project.runtime,
    network,
    env: { ...project.env, ...given.env },
    limits: { ...limits, ...given.limits },
  };
  return { settings, taken };
}

function addsTo(given: object, more: object): boolean {
  return Object.keys(more).some((name) => !Object.hasOwn(given, name));
}
