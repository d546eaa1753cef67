import { boundary } from "@agentfense/sdk/tool-kit";
import { z } from "zod";
import { declareTool, ToolFailure } from "./tool.ts";
import { workspacePath } from "./workspace-path.ts";

const DEFAULT_LINES = 2000;

export const readFile = declareTool({
  name: "read_file",
  description: "Reads a text file of the workspace, as it is, or some of its lines.",
  input: z.strictObject({
    path: z.string().min(1).describe("Relative to /workspace"),
    offset: z.int().min(1).max(1_000_000_000).optional().describe("The first line, counted from 1; default 1"),
    limit: z.int().min(1).max(1_000_000).optional().describe(`How many lines; default ${DEFAULT_LINES}`),
  }),
  risk: "SAFE",
  effects: { readOnly: true, destructive: false, openWorld: false },
  handler: async ({ path, offset = 1, limit = DEFAULT_LINES }, { workspace, maxOutput }) => {
    const text = await workspace.readFile(workspacePath(path));
    if (text.includes("\0")) throw new ToolFailure(`${path} is no text file`);
    return { text: text === "" ? "(empty file)" : windowOf(text, { path, offset, limit, maxOutput }) };
  },
});

interface Window {
  readonly path: string;
  readonly offset: number;
  readonly limit: number;
  readonly maxOutput: number;
}

/** Some lines, no more than fit; what is left out is told. */
function windowOf(text: string, { path, offset, limit, maxOutput }: Window): string {
  const begin = startOfLine(text, offset);
  if (begin === undefined) throw new ToolFailure(`${path} has only ${countLines(text)} lines`);
  let end = begin;
  let line = offset;
  for (; line < offset + limit && end < text.length; line += 1) {
    const next = text.indexOf("\n", end) + 1 || text.length;
    if (next - begin > maxOutput) {
      // A line that would fit in an answer of its own is left for the next one.
      if (end > begin) break;
      return `${text.slice(begin, boundary(text, begin + maxOutput))}\n[line ${line} is cut: it is too long]`;
    }
    end = next;
  }
  const shown = text.slice(begin, end);
  if (end === text.length) return shown;
  return `${shown}${shown.endsWith("\n") ? "" : "\n"}[more lines: read on with offset ${line}]`;
}

function startOfLine(text: string, line: number): number | undefined {
  let at = 0;
  for (let count = 1; count < line; count += 1) {
    at = text.indexOf("\n", at) + 1;
    if (at === 0 || at === text.length) return undefined;
  }
  return at;
}

function countLines(text: string): number {
  const newlines = text.split("\n").length - 1;
  return text.endsWith("\n") ? newlines : newlines + 1;
}
