import { readCall } from "../src/command.ts";
import { mcp } from "../src/commands/mcp.ts";
import { type McpRequest, readMcpRequest } from "../src/mcp/request.ts";

/** What `agentfense mcp` is asked for with these arguments. */
export async function readMcp(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<McpRequest> {
  const { values, given } = readCall(mcp, args);
  return await readMcpRequest(values, given[0], environment);
}
