import { keepLines } from "@agentfense/sdk/tool-kit";
import { z } from "zod";
import type { WorkspaceEntry } from "../workspace/workspace.ts";
import { declareTool } from "./tool.ts";
import { workspacePath } from "./workspace-path.ts";

export const listFiles = declareTool({
  name: "list_files",
  description: "Lists a directory of the workspace. Directories end in a slash, symbolic links in @.",
  input: z.strictObject({
    path: z.string().min(1).optional().describe("Relative to /workspace; default /workspace itself"),
    recursive: z.boolean().optional().describe("With all that is below; default false"),
  }),
  risk: "SAFE",
  effects: { readOnly: true, destructive: false, openWorld: false },
  handler: async ({ path = "", recursive = false }, { workspace, maxOutput }) => {
    const entries = await workspace.list(workspacePath(path), { recursive });
    const lines = entries.map(lineFor);
    return { text: lines.length === 0 ? "(nothing)" : keepLines(lines, maxOutput, "list a directory below") };
  },
});

const ENDINGS = { file: "", directory: "/", symlink: "@" } satisfies Record<WorkspaceEntry["kind"], string>;

function lineFor({ path, kind }: WorkspaceEntry): string {
  return path + ENDINGS[kind];
}
