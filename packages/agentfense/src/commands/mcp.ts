import { needAgentLayer } from "../agent-layer.ts";
import type { Command } from "../command.ts";
import { MCP_HELP, readMcpRequest } from "../mcp/request.ts";

export const mcp: Command = { help: MCP_HELP, handlesClosedOutput: true, run };

async function run(args: readonly string[]): Promise<number> {
  const request = await readMcpRequest(args, process.env);
  // The engine and the protocol are loaded for who serves, not for who asks for help.
  const { serveMcp } = await needAgentLayer("mcp", () => import("../mcp/serve.ts"));
  return await serveMcp(request);
}
