import { randomBytes } from "node:crypto";
import { openLimitHost } from "../../limits/open.ts";
import type { HostFacts } from "./facts.ts";

/** How limits would be enforced here: asked of the part that enforces them, which leaves nothing behind. */
export async function readLimits(): Promise<HostFacts["limits"]> {
  try {
    const host = await openLimitHost({ instance: randomBytes(8).toString("hex"), log: () => {} });
    const { kind, degradations } = host;
    await host.close();
    return { kind, degradations };
  } catch (error) {
    return { error: (error as Error).message };
  }
}
