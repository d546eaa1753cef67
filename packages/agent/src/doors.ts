import { type AioParts, type Door, onDemand } from "@agentfense/doors/serve";
import { CONFIRMATIONS_PATH, confirmationKeyIn } from "./confirmation/door/address.ts";
import type { McpApproval } from "./mcp/client-confirmation.ts";

// What this layer has for a server's doors. Imports nothing that is heavy: each part is loaded with its first visitor.

/** MCP, and browsers where there is a Chromium for them, for the door of AIO's clients. */
export async function aioParts({
  approval,
  browserPath,
}: {
  readonly approval?: McpApproval | undefined;
  readonly browserPath?: string | undefined;
}): Promise<AioParts> {
  const { doorMcp } = await import("./mcp/http.ts");
  await using parts = new AsyncDisposableStack();
  const mcp = parts.use(doorMcp({ approval }));
  const browser = browserPath === undefined ? undefined : parts.use(await browsers(browserPath));
  const held = parts.move();
  return { mcp, browser, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

async function browsers(executablePath: string) {
  const { AioBrowsers } = await import("./browser/aio-browsers.ts");
  return new AioBrowsers({ executablePath });
}

export function confirmationsOnDemand(
  options: { readonly reviewers: "owner" | "other-key" | "admin" },
  /** Told what callers are not: failures inside. */
  onError: (error: unknown) => void,
): Door {
  const load = async () => {
    const { ConfirmationBroker } = await import("./confirmation/broker.ts");
    const { confirmationDoor } = await import("./confirmation/door/door.ts");
    const broker = new ConfirmationBroker();
    return { door: confirmationDoor(broker, options), [Symbol.asyncDispose]: async () => broker.close() };
  };
  return onDemand({ prefix: CONFIRMATIONS_PATH, keyIn: confirmationKeyIn, sockets: true }, load, onError);
}
