import { type ConnectOptions, type FromLocalOptions, Sandbox } from "@agentfense/sdk";
import type { AgentWorkspace } from "../../workspace/agent-workspace.ts";
import { OUTPUT_BYTES } from "../executor.ts";
import type { SandboxSource } from "./sandbox-source.ts";

/** A workspace, and how sandboxes are opened on its directory. */
export interface WorkspaceSandboxOptions
  extends Pick<FromLocalOptions, keyof ConnectOptions | "preset" | "permissions" | "resources" | "env" | "labels"> {
  readonly workspace: Pick<AgentWorkspace, "directory">;
  /** Default: those of a server, by the SDK. */
  readonly sandboxes?: SandboxSource | undefined;
}

/** Without rules, the code may do in the workspace what it likes. */
const EVERYTHING = [{ pattern: "/**", permission: "write" }] as const;

/** Opens a sandbox on all of the directory, with nothing decided by what is in it: the code may have put it there. */
export async function openOnWorkspace(
  options: WorkspaceSandboxOptions,
  fixed: Pick<FromLocalOptions, "runtime" | "image" | "network" | "resources">,
  signal: AbortSignal,
): Promise<Sandbox> {
  const { permissions, preset, resources, sandboxes = Sandbox, workspace, ...rest } = options;
  const rules =
    preset === undefined && permissions === undefined ? { permissions: EVERYTHING } : { preset, permissions };
  return await sandboxes.fromLocal(workspace.directory, {
    ...rest,
    ...fixed,
    ...rules,
    resources: { outputBytes: OUTPUT_BYTES, ...fixed.resources, ...resources },
    policy: false,
    sync: "manual",
    ignoreFiles: false,
    includeGit: true,
    signal,
  });
}
