import type { SandboxClient } from "../../client/client.ts";
import { SandboxError } from "../../errors.ts";
import type { CallOptions } from "../../model/options.ts";
import type { SandboxInfo } from "../../model/records.ts";

/** Starts it unless it runs; somebody else may be quicker. */
export async function startIdempotently(
  client: SandboxClient,
  { id }: Pick<SandboxInfo, "id">,
  options: CallOptions,
): Promise<SandboxInfo> {
  try {
    return await client.startSandbox(id, options);
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== "SANDBOX_ALREADY_RUNNING") throw error;
    return await client.getSandbox(id, options);
  }
}
