import { clip, keepLines } from "@agentfense/sdk/tool-kit";
import { sandboxTools, type ToolSandbox } from "@agentfense/sdk/tools";
import { z } from "zod";
import { findText } from "./find-text.ts";
import { declareTool, type ToolContext, type ToolResult } from "./tool.ts";
import { workspacePath } from "./workspace-path.ts";

const DEFAULT_RESULTS = 100;
const LINE_CHARACTERS = 500;

export const search = declareTool({
  name: "search",
  description:
    "Searches the text files of the workspace for a regular expression (POSIX extended; where there is no grep, for plain text) " +
    "and gives path:line:text of each match.",
  input: z.strictObject({
    pattern: z.string().min(1).max(10_000).describe("What to look for within a line"),
    path: z.string().min(1).optional().describe("A directory or file, relative to /workspace; default all"),
    max_results: z.int().min(1).max(10_000).optional().describe(`How many matches to give; default ${DEFAULT_RESULTS}`),
  }),
  risk: "SAFE",
  effects: { readOnly: true, destructive: false, openWorld: false },
  handler: async (input, context) =>
    context.sandbox === undefined
      ? await inWorkspace(input, context)
      : await inSandbox(input, context, context.sandbox),
});

interface Search {
  readonly pattern: string;
  readonly path?: string | undefined;
  readonly max_results?: number | undefined;
}

/** By the tool of the SDK: the pattern is the model's, so it is matched in the sandbox and not here. */
async function inSandbox(input: Search, { maxOutput, signal }: ToolContext, sandbox: ToolSandbox): Promise<ToolResult> {
  const [tool] = sandboxTools(sandbox, { only: ["search"], maxOutput });
  return await tool!.execute(input, { signal });
}

/** A regular expression could keep this process busy for ever, so only plain text is looked for. */
async function inWorkspace(
  { pattern, path = "", max_results: limit = DEFAULT_RESULTS }: Search,
  { workspace, maxOutput, signal }: ToolContext,
): Promise<{ readonly text: string }> {
  const { matches, isComplete } = await findText(workspace, workspacePath(path), { pattern, limit, signal });
  const lines = [
    ...(matches.length === 0 ? ["(no matches)"] : []),
    ...matches.map((match) => `${match.path}:${match.line}:${clip(match.text, LINE_CHARACTERS)}`),
    ...(isComplete ? [] : ["[there may be more: the search was cut short]"]),
    "[this was searched for as plain text]",
  ];
  return { text: keepLines(lines, maxOutput, "search for less") };
}
