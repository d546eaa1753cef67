import { compileRules, getPreset, LEVEL, type Rule } from "@agentfense/permission";
import type { NetworkMode, RuleOptions, SandboxOptions } from "../model/options.ts";
import { POLICY_FILE, type ProjectPolicy } from "./read.ts";
import { ProjectPolicyError } from "./yaml.ts";

// Who wrote the policy is not always who runs it. So the file decides about the project itself (which of its paths a
// sandbox sees), about limits and about what the sandbox has anyway, and never opens the sandbox to the outside.

export const DEFAULT_PRESET = "agent-safe";

/** A policy without the file it came from. */
type Policy = Omit<ProjectPolicy, "path"> & { readonly path?: string };

type Taken = Pick<SandboxOptions, "runtime" | "network" | "resources" | "env"> & {
  readonly permissions: readonly Rule[];
};

/**
 * What a sandbox on a project is made with: what the caller says wins, the policy fills in the rest. The rules come out
 * expanded, without a preset, and never let the sandbox write the policy itself.
 *
 * | option       | caller and policy                                                                          |
 * | ------------ | ------------------------------------------------------------------------------------------ |
 * | rules        | the caller's preset and permissions; if there are neither, the policy's; then agent-safe   |
 * | network      | the caller's; a policy that asks for more than none is refused until the caller says so;   |
 * |              | who says "filtered" takes the policy's list                                                |
 * | env, limits  | both, name by name; the caller's win                                                       |
 * | runtime      | the caller's, else the policy's                                                            |
 */
export function withProjectPolicy<Options extends SandboxOptions>(
  given: Options,
  policy: ProjectPolicy | undefined,
): Omit<Options, "preset" | "permissions"> & Taken {
  const { preset: _preset, permissions: _permissions, ...rest } = given;
  const runtime = given.runtime ?? policy?.runtime;
  const network = takenNetwork(given.network, policy);
  return {
    ...rest,
    ...(runtime !== undefined && { runtime }),
    ...(network !== undefined && { network }),
    ...((given.resources ?? policy?.resources) && { resources: { ...policy?.resources, ...given.resources } }),
    ...((given.env ?? policy?.env) && { env: { ...policy?.env, ...given.env } }),
    permissions: protectPolicyFile(takenRules(given, policy)),
  };
}

/** The rules of the caller, else of the policy, else of the default preset; presets expanded. */
export function takenRules(given: RuleOptions, policy: Policy | undefined): readonly Rule[] {
  const { preset, permissions } = says(given) ? given : policy !== undefined && says(policy) ? policy : {};
  if (preset === undefined && permissions !== undefined) return permissions;
  return [...getPreset(preset ?? DEFAULT_PRESET), ...(permissions ?? [])];
}

function says({ preset, permissions }: RuleOptions): boolean {
  return preset !== undefined || permissions !== undefined;
}

/** The network to use; a policy alone never opens it. */
export function takenNetwork(
  given: SandboxOptions["network"],
  policy: ProjectPolicy | undefined,
): SandboxOptions["network"] {
  const asked = policy?.network;
  if (given === "filtered" && typeof asked === "object") return asked;
  if (given !== undefined || policy === undefined || asked === undefined || asked === "none") return given ?? asked;
  const mode = networkMode(asked);
  throw new ProjectPolicyError(policy.path, `asks for the network ${mode}, which a file cannot allow itself`, {
    hint: `say it yourself too: network ${mode}, or network none to run without`,
  });
}

export function networkMode(network: NonNullable<SandboxOptions["network"]>): NetworkMode {
  return typeof network === "object" ? "filtered" : network;
}

/**
 * The same rules, and if they would let a sandbox write `/.agentfense.yaml`, there or not, one more that allows reading at
 * most: nobody loosens the rules of the next run.
 */
export function protectPolicyFile(rules: readonly Rule[]): readonly Rule[] {
  const path = `/${POLICY_FILE}`;
  if (compileRules(rules).decide(path).level <= LEVEL.read) return rules;
  const top = rules.reduce((highest, { priority = 0 }) => Math.max(highest, priority), 0);
  // At the very top there is no priority above: the stricter of two rules of one rank wins, and a file rule outranks globs.
  const priority = Math.min(top + 1, Number.MAX_SAFE_INTEGER);
  return [...rules, { pattern: path, permission: "read", type: "file", priority }];
}
