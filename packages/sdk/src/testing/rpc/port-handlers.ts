import { Fault, invalid } from "../faults.ts";
import type { World } from "../world.ts";
import { required } from "./fields.ts";
import type { SandboxHandlers } from "./sandbox-parts.ts";

/** Nothing that runs here can listen: whoever asks is told so, after what a server would refuse. */
export function portHandlers(world: World): SandboxHandlers<"getPort" | "waitForPort" | "forwardPort"> {
  const refuse = (sandboxId: string, port: number): never => {
    world.sandbox(required(sandboxId, "sandbox_id")).requireRunning();
    if (port < 1 || port > 65_535) throw invalid(`port must be from 1 to 65535, not ${port}`, { field: "port" });
    throw new Fault("RUNTIME_UNAVAILABLE", "the mock runs nothing that could listen at a port");
  };
  return {
    getPort: async ({ sandboxId, port }) => refuse(sandboxId, port),
    waitForPort: async ({ sandboxId, port }) => refuse(sandboxId, port),
    // biome-ignore lint/correctness/useYield: it is refused before there is anything to say
    async *forwardPort(requests) {
      for await (const { content } of requests) {
        if (content.case !== "open") throw invalid("open must be sent first");
        refuse(content.value.sandboxId, content.value.port);
      }
      throw invalid("no open received");
    },
  };
}
