import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import manifest from "../../package.json" with { type: "json" };
import { answerResources } from "./resources.ts";
import { type McpSource, type McpSourceOptions, mcpSource } from "./source.ts";
import { answerTools } from "./tools.ts";

const INSTRUCTIONS =
  "These tools work in a sandbox. The project is at /workspace there, as far as its rules show it: files that seem to be " +
  "missing may be hidden on purpose. What is changed stays apart from the real project until its owner takes it over; " +
  "agentfense://changes lists it.";

/** An MCP server for one client: connect it to a transport. */
export function createMcpServer(options: McpSourceOptions): McpServer {
  return serverFor(mcpSource(options));
}

/** A server on what others may be serving too. */
export function serverFor(source: McpSource): McpServer {
  const server = new McpServer(
    { name: "agentfense", title: "AgentFense", version: manifest.version },
    { instructions: INSTRUCTIONS, capabilities: { tools: {}, resources: {} } },
  );
  answerTools(server, source);
  answerResources(server, source);
  return server;
}
