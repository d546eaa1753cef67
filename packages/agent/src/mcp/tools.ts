import { Buffer } from "node:buffer";
import type { ToolResult } from "@agentfense/sdk/tool-kit";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
  type Tool as McpTool,
} from "@modelcontextprotocol/sdk/types.js";
import type { ToolDescription } from "../world/world.ts";
import type { McpSource } from "./source.ts";

/** How many calls one client may have at a time: each may be a process in the sandbox. */
const MOST_CALLS = 32;

/** Lists and calls the tools of a world. What a tool cannot do is an answer of the tool, not a failure of the protocol. */
export function answerTools(mcp: McpServer, { world, confirmation, context, afterCall }: McpSource): void {
  const tools = world.tools();
  const looking = new Set(tools.filter(({ effects }) => effects.readOnly).map(({ name }) => name));
  let calls = 0;
  mcp.server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.map(described) }));
  mcp.server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: input } }, extra) => {
    if (calls >= MOST_CALLS) return answered({ text: `more than ${MOST_CALLS} calls at a time`, isError: true });
    const { signal, requestId } = extra;
    const work = () => world.execute(name, input, { ...context, signal });
    calls += 1;
    try {
      const result = await (confirmation === undefined
        ? work()
        : confirmation.during({ server: mcp, requestId }, work));
      const remark = looking.has(name) ? undefined : await afterCall?.();
      return answered(remark === undefined ? result : { ...result, text: `${result.text}\n${remark}` });
    } finally {
      calls -= 1;
    }
  });
}

function described({ name, description, inputSchema, effects }: ToolDescription): McpTool {
  return {
    name,
    description,
    inputSchema: inputSchema as McpTool["inputSchema"],
    annotations: {
      readOnlyHint: effects.readOnly,
      destructiveHint: effects.destructive,
      openWorldHint: effects.openWorld,
    },
  };
}

function answered({ text, isError, images = [] }: ToolResult): CallToolResult {
  const pictures = images.map(({ data, mimeType }) => {
    return { type: "image" as const, mimeType, data: Buffer.from(data).toString("base64") };
  });
  return { content: [{ type: "text", text: text.toWellFormed() }, ...pictures], isError };
}
