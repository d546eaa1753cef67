import { AIO_PREFIX, aioKeyIn } from "./aio-door/address.ts";
import { CONFIRMATIONS_PATH, confirmationKeyIn } from "./confirmation/door/address.ts";
import type { Door } from "./door.ts";
import type { McpApproval } from "./mcp/client-confirmation.ts";
import { onDemand } from "./on-demand.ts";

// The ways into a server besides gRPC and REST, for whoever starts one. Imports nothing that is heavy: see on-demand.ts.

export interface ServerDoorsOptions {
  /** Absent: clients of the AIO sandbox are not served. */
  readonly aio?:
    | {
        readonly approval?: McpApproval;
        readonly browserPath?: string | undefined;
        readonly longestMs?: number | undefined;
      }
    | undefined;
  /** Absent: nobody can be asked here. */
  readonly confirmations?: { readonly reviewers: "owner" | "other-key" | "admin" } | undefined;
  /** Told what callers are not: failures inside. */
  readonly onError: (error: unknown) => void;
}

export function serverDoors({ aio, confirmations, onError }: ServerDoorsOptions): Door[] {
  return [
    ...(aio === undefined ? [] : [aioDoor(aio, onError)]),
    ...(confirmations === undefined ? [] : [confirmationDoor(confirmations, onError)]),
  ];
}

function aioDoor(
  { approval, browserPath, longestMs }: NonNullable<ServerDoorsOptions["aio"]>,
  onError: ServerDoorsOptions["onError"],
): Door {
  const load = async () => {
    const { aioDoor } = await import("./aio-door/door.ts");
    const { doorMcp } = await import("./mcp/door-mcp.ts");
    await using parts = new AsyncDisposableStack();
    const mcp = parts.use(doorMcp({ approval }));
    const browser = browserPath === undefined ? undefined : parts.use(await browsers(browserPath));
    const door = aioDoor({ mcp, browser, longestMs, onError });
    const held = parts.move();
    return { door, [Symbol.asyncDispose]: () => held.disposeAsync() };
  };
  return onDemand({ prefix: AIO_PREFIX, keyIn: aioKeyIn, sockets: false }, load, onError);
}

async function browsers(executablePath: string) {
  const { AioBrowsers } = await import("./browser/aio-browsers.ts");
  return new AioBrowsers({ executablePath });
}

function confirmationDoor(
  { reviewers }: NonNullable<ServerDoorsOptions["confirmations"]>,
  onError: ServerDoorsOptions["onError"],
): Door {
  const load = async () => {
    const { ConfirmationBroker } = await import("./confirmation/broker.ts");
    const { confirmationDoor } = await import("./confirmation/door/door.ts");
    const broker = new ConfirmationBroker();
    return { door: confirmationDoor(broker, { reviewers }), [Symbol.asyncDispose]: async () => broker.close() };
  };
  return onDemand({ prefix: CONFIRMATIONS_PATH, keyIn: confirmationKeyIn, sockets: true }, load, onError);
}
