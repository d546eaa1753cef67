import type { Script } from "./script.ts";

/** As much of a prompt as all versions of the AI SDK have in common. */
export type Prompt = readonly {
  readonly role: string;
  readonly content: string | readonly { readonly type: string }[];
}[];

interface ToolResult {
  readonly type: "tool-result";
  readonly toolCallId: string;
  readonly output: { readonly type: string; readonly value?: unknown };
}

/** The tokens of models of the specifications 3 and 4. */
export const USAGE = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

/** Hears the outputs in a prompt, and makes the next call. */
export function answerTo(prompt: Prompt, script: Script) {
  for (const { toolCallId, output } of prompt.flatMap(toolResultsIn)) {
    script.hear(toolCallId, typeof output.value === "string" ? output.value : JSON.stringify(output.value));
  }
  const call = script.next();
  if (call === undefined) {
    return { content: [{ type: "text" as const, text: "done" }], reason: "stop" as const };
  }
  const { id: toolCallId, tool: toolName } = call;
  return {
    content: [{ type: "tool-call" as const, toolCallId, toolName, input: JSON.stringify(call.input) }],
    reason: "tool-calls" as const,
  };
}

function toolResultsIn({ content }: Prompt[number]): ToolResult[] {
  return typeof content === "string" ? [] : content.filter((part): part is ToolResult => part.type === "tool-result");
}
