import type { FromLocalOptions, Sandbox } from "@agentfense/sdk";

/** What opens sandboxes: the class `Sandbox` of the SDK, or of `agentfense`. */
export interface SandboxSource {
  fromLocal(directory: string, options?: FromLocalOptions): Promise<Sandbox>;
}
