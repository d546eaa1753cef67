import type { SandboxOptions } from "@agentfense/sdk";
import { networkMode, type ProjectPolicy, takenNetwork } from "@agentfense/sdk/project";
import type { SandboxLimits } from "@agentfense/server/isolation";
import { explainingPolicy } from "../project-policy.ts";

/** What the command line can leave to the policy of the project. */
export interface Negotiable {
  readonly runtime: string | undefined;
  readonly network: SandboxOptions["network"];
  readonly env: Readonly<Record<string, string>>;
  readonly limits: SandboxLimits;
}

/** The command line's word, and where it says nothing the project's; `taken` names what that was. */
export async function withProjectPart(
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
