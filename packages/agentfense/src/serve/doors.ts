import { aioDoorOnDemand, e2bDoorsOnDemand } from "@agentfense/doors/serve";
import type { Door } from "@agentfense/server";
import type { ServerConfig } from "@agentfense/server/configuration";
import { Code, ConnectError } from "@connectrpc/connect";
import { ifAgentLayer, installLine } from "../agent-layer.ts";

type Log = (entry: object) => void;

/** What the settings put beside gRPC and REST. */
export async function doorsOf({ server, runtime }: ServerConfig, log: Log): Promise<readonly Door[]> {
  if (server.http_addr === "" || !(server.aio || server.e2b || server.confirmations)) return [];
  const onError = (error: unknown): void => log({ level: "error", message: "a request failed", error });
  const layer = await ifAgentLayer(() => import("@agentfense/agent/doors"));
  if (layer === undefined) tellOfMissing(server, log);
  const doors: Door[] = [];
  if (server.aio) {
    const longestMs = runtime.max_timeout || undefined;
    const from = { approval: server.aio_approve, browserPath: server.aio_browser || undefined };
    const parts = layer === undefined ? undefined : () => layer.aioParts(from);
    doors.push(aioDoorOnDemand({ longestMs, parts, onError }));
  }
  if (server.e2b) doors.push(...e2bDoorsOnDemand({ onError }));
  if (server.confirmations) {
    const options = { reviewers: server.confirmation_reviewers };
    doors.push(layer?.confirmationsOnDemand(options, onError) ?? lockedDoor(CONFIRMATIONS));
  }
  return doors;
}

const CONFIRMATIONS = "/v1/confirmations";

function tellOfMissing({ aio, confirmations }: ServerConfig["server"], log: Log): void {
  const missing = [...(aio ? ["MCP and browsers below /aio/"] : []), ...(confirmations ? [CONFIRMATIONS] : [])];
  const how = installLine("serve", import.meta.dirname);
  log({ level: "info", message: `${missing.join(" and ")} come with the agent layer, which is not installed: ${how}` });
}

/** Without the agent layer, whoever comes to its door is told what the server lacks. */
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
