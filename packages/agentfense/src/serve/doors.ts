import { aioDoorOnDemand, type E2bTemplates, e2bDoorsOnDemand } from "@agentfense/doors/serve";
import type { Door } from "@agentfense/server";
import type { ServerConfig } from "@agentfense/server/configuration";
import { Code, ConnectError } from "@connectrpc/connect";
import { ifAgentLayer, installLine } from "../agent-layer.ts";

type Log = (entry: object) => void;

/** What the settings put beside gRPC and REST. */
export async function doorsOf({ server, runtime, e2b }: ServerConfig, log: Log): Promise<readonly Door[]> {
  const onError = (error: unknown): void => log({ level: "error", message: "a request failed", error });
  const ofE2b = e2b.enabled ? e2bDoorsOnDemand({ ...e2bOptions(e2b), onError }) : [];
  if (server.http_addr === "") return ofE2b.filter(({ address }) => address !== undefined);
  if (!(server.aio || server.confirmations)) return ofE2b;
  const layer = await ifAgentLayer(() => import("@agentfense/agent/doors"));
  if (layer === undefined) tellOfMissing(server, log);
  const doors: Door[] = [...ofE2b];
  if (server.aio) {
    const longestMs = runtime.max_timeout || undefined;
    const from = { approval: server.aio_approve, browserPath: server.aio_browser || undefined };
    const parts = layer === undefined ? undefined : () => layer.aioParts(from);
    doors.push(aioDoorOnDemand({ longestMs, parts, onError }));
  }
  if (server.confirmations) {
    const options = { reviewers: server.confirmation_reviewers };
    doors.push(layer?.confirmationsOnDemand(options, onError) ?? lockedDoor(CONFIRMATIONS));
  }
  return doors;
}

function e2bOptions({ addr, public_ports: publicPorts, templates }: ServerConfig["e2b"]) {
  const entries = Object.entries(templates).map(([name, { resources = {}, ...template }]) => [
    name,
    { ...template, resources: inCamelCase(resources) },
  ]);
  return { address: addr || undefined, publicPorts, templates: Object.fromEntries(entries) as E2bTemplates };
}

/** The names of the file, as the SDK has them. */
function inCamelCase(resources: Readonly<Record<string, number>>): Record<string, number> {
  const entries = Object.entries(resources).map(([name, value]) => [
    name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(entries) as Record<string, number>;
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
