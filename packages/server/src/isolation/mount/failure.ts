import { SandboxError } from "../backend/errors.ts";
import { readFuseDevice } from "../doctor/facts.ts";
import { judgeFuseDevice } from "../doctor/judgement.ts";

/** Why a workspace cannot be mounted on this host, in the doctor's words where it has some. */
export async function explainMountFailure(cause: unknown): Promise<SandboxError> {
  const { verdict, summary, fix } = judgeFuseDevice({ fuseDevice: await readFuseDevice() });
  const message = `the workspace cannot be mounted (${cause instanceof Error ? cause.message : cause})`;
  return new SandboxError("RUNTIME_UNAVAILABLE", verdict === "ok" ? message : summary, { hint: fix, cause });
}
