import { type StructuredToolInterface, tool } from "@langchain/core/tools";
import { sandboxTools, type ToolOptions, type ToolSandbox } from "./tools.ts";

/** The tools of a sandbox for `createAgent`, `bindTools` and everything else of LangChain that takes tools. */
export function langchainTools(sandbox: ToolSandbox, options: ToolOptions = {}): StructuredToolInterface[] {
  return sandboxTools(sandbox, options).map(({ name, description, inputSchema, execute }) =>
    tool(async (input: unknown, config) => (await execute(input, { signal: config.signal })).text, {
      name,
      description,
      schema: inputSchema,
      verboseParsingErrors: true,
    }),
  );
}
