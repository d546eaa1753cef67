import { readHost } from "./facts.ts";
import type { Finding } from "./judgement.ts";
import { judgeHost } from "./judgement.ts";

export { type Finding, type RealRuntime, workingRuntimes } from "./judgement.ts";

/** What this host has and lacks for running sandboxes. */
export async function examineHost(): Promise<readonly Finding[]> {
  return judgeHost(await readHost());
}
