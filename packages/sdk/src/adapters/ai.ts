import { jsonSchema, type ToolSet, tool } from "ai";
import { sandboxTools, type ToolOptions, type ToolSandbox } from "./tools.ts";

/** The tools of a sandbox for `generateText`, `streamText` and agents of the Vercel AI SDK. */
export function aiTools(sandbox: ToolSandbox, options: ToolOptions = {}): ToolSet {
  return Object.fromEntries(
    sandboxTools(sandbox, options).map(({ name, description, inputSchema, execute }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema<unknown>(inputSchema),
        execute: async (input, { abortSignal }) => (await execute(input, { signal: abortSignal })).text,
      }),
    ]),
  );
}
