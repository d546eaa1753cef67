import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import manifest from "../../package.json" with { type: "json" };
import { answerResources } from "./resources.ts";
import { type ChangesReachProject, type McpSource, type McpSourceOptions, mcpSource } from "./source.ts";
import { answerTools } from "./tools.ts";

const WHERE_CHANGES_GO: Readonly<Record<ChangesReachProject, string>> = {
  "when-taken-over": "What is changed stays apart from the real project until its owner takes it over",
  "with-each-call": "What is changed is written to the real project with each call, as far as its rules allow",
  "at-the-end": "What is changed is written to the real project when this connection ends, as far as its rules allow",
};

function instructions({ sandbox, changesReachProject }: McpSource): string {
  return (
    "These tools work in a sandbox. The project is at /workspace there, as far as its rules show it: files that seem to be " +
    `missing may be hidden on purpose. ${WHERE_CHANGES_GO[changesReachProject]}` +
    (sandbox === undefined ? "." : "; agentfense://changes lists what is not there yet.")
  );
}

/** An MCP server for one client: connect it to a transport. */
export function createMcpServer(options: McpSourceOptions): McpServer {
  return serverFor(mcpSource(options));
}

/** A server on what others may be serving too. */
export function serverFor(source: McpSource): McpServer {
  const server = new McpServer(
    { name: "agentfense", title: "AgentFense", version: manifest.version },
    { instructions: instructions(source), capabilities: { tools: {}, resources: {} } },
  );
  answerTools(server, source);
  answerResources(server, source);
  return server;
}
