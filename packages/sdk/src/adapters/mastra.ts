import { createTool, type Tool } from "@mastra/core/tools";
import { sandboxTools, type ToolOptions, type ToolSandbox } from "./tools.ts";

/** The tools of a sandbox for an `Agent` of Mastra. */
export function mastraTools(sandbox: ToolSandbox, options: ToolOptions = {}): Record<string, Tool> {
  return Object.fromEntries(
    sandboxTools(sandbox, options).map(({ name, description, inputSchema, execute }) => [
      name,
      createTool({
        id: name,
        description,
        inputSchema,
        execute: async (input: unknown, { abortSignal }) => (await execute(input, { signal: abortSignal })).text,
      }),
    ]),
  );
}
