import { z } from "zod";
import { declareTool } from "./tool.ts";
import { workspacePath } from "./workspace-path.ts";

export const writeFile = declareTool({
  name: "write_file",
  description:
    "Writes a file of the workspace: a new one, with the directories on its way, or all of one that is there.",
  input: z.strictObject({
    path: z.string().min(1).describe("Relative to /workspace"),
    content: z.string().describe("All that the file is to hold"),
  }),
  risk: "LOW",
  effects: { readOnly: false, destructive: true, openWorld: false },
  handler: async ({ path, content }, { workspace, turns }) => {
    await turns.take(() => workspace.writeFile(workspacePath(path), content));
    return { text: `wrote ${path}` };
  },
});
