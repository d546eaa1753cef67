import type { Door } from "@agentfense/server";
import type { ServerConfig } from "@agentfense/server/configuration";
import { Code, ConnectError } from "@connectrpc/connect";
import { ifAgentLayer, installLine } from "../agent-layer.ts";

type Log = (entry: object) => void;

/** What the settings put beside gRPC and REST. */
export async function doorsOf({ server, runtime }: ServerConfig, log: Log): Promise<readonly Door[]> {
  if (server.http_addr === "" || !(server.aio || server.confirmations)) return [];
  const layer = await ifAgentLayer(() => import("@agentfense/agent/doors"));
  if (layer === undefined) return lockedDoors(server, log);
  return layer.serverDoors({
    ...(server.aio && {
      aio: {
        approval: server.aio_approve,
        browserPath: server.aio_browser || undefined,
        longestMs: runtime.max_timeout || undefined,
      },
    }),
    ...(server.confirmations && { confirmations: { reviewers: server.confirmation_reviewers } }),
    onError: (error) => log({ level: "error", message: "a request failed", error }),
  });
}

const AIO = "/aio/";
const CONFIRMATIONS = "/v1/confirmations";

/** Without the agent layer, whoever comes to one of its doors is told what the server lacks. */
function lockedDoors({ aio, confirmations }: ServerConfig["server"], log: Log): Door[] {
  const prefixes = [...(aio ? [AIO] : []), ...(confirmations ? [CONFIRMATIONS] : [])];
  const how = installLine("serve", import.meta.dirname);
  log({
    level: "info",
    message: `${prefixes.join(" and ")} come with the agent layer, which is not installed: ${how}`,
  });
  return prefixes.map(lockedDoor);
}

function lockedDoor(prefix: string): Door {
  const sentence = `${prefix} is not served here: its operator has not installed the package @agentfense/agent`;
  return {
    prefix,
    answer: () => Promise.reject(new ConnectError(sentence, Code.Unimplemented)),
    upgrade: (_request, socket) => {
      const head = ["HTTP/1.1 501 Not Implemented", "Content-Type: text/plain", "Connection: close"];
      socket.end(`${head.join("\r\n")}\r\n\r\n${sentence}\n`);
    },
  };
}
