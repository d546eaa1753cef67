import { type Tool, tool } from "@openai/agents";
import { sandboxTools, type ToolInputSchema, type ToolOptions, type ToolSandbox } from "./tools.ts";

/** The tools of a sandbox for an `Agent` of the OpenAI Agents SDK. */
export function openaiAgentsTools(sandbox: ToolSandbox, options: ToolOptions = {}): Tool<unknown>[] {
  return sandboxTools(sandbox, options).map(({ name, description, inputSchema, execute }) =>
    tool({
      name,
      description,
      parameters: strictSchema(inputSchema),
      strict: true,
      execute: async (input: unknown, _, details) => (await execute(input, { signal: details?.signal })).text,
      // What the model can act on is text already: anything else ends the run.
      errorFunction: null,
    }),
  );
}

/** In the strict mode everything is required, and what is optional may be null. */
function strictSchema({ properties, required }: ToolInputSchema) {
  const entries = Object.entries(properties).map(([name, schema]) => {
    const isRequired = required.includes(name);
    return [name, isRequired ? schema : { ...schema, type: [schema.type, "null"] }] as const;
  });
  return {
    type: "object" as const,
    properties: Object.fromEntries(entries),
    required: Object.keys(properties),
    additionalProperties: false as const,
  };
}
