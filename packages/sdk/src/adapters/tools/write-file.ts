import { z } from "zod";
import { writeWithParents } from "../text-file.ts";
import { declareTool } from "./declaration.ts";

export const writeFile = declareTool({
  description:
    "Writes a file of the workspace: a new one, with the directories on its way, or all of one that is there.",
  input: z.strictObject({
    path: z.string().min(1).describe("Relative to /workspace"),
    content: z.string().describe("All that the file is to hold"),
  }),
  readOnly: false,
  run: async ({ path, content }, { sandbox, turns, signal }) => {
    await turns.take(() => writeWithParents(sandbox.files, path, content, { signal }));
    return `wrote ${path}`;
  },
});
