import { z } from "zod";
import { replaceText } from "../text-file.ts";
import { declareTool } from "./declaration.ts";

export const editFile = declareTool({
  description:
    "Replaces text in a file of the workspace. The old text must be there exactly as given, white space included, and only once " +
    "unless all are to be replaced.",
  input: z.strictObject({
    path: z.string().min(1).describe("Relative to /workspace"),
    old_text: z.string().min(1).describe("What to replace, with enough around it to be the only such place"),
    new_text: z.string().describe("What to put there"),
    replace_all: z.boolean().optional().describe("Replace every such place; default false"),
  }),
  readOnly: false,
  run: async ({ path, old_text, new_text, replace_all = false }, { sandbox, turns, signal }) => {
    const replacement = { oldText: old_text, newText: new_text, all: replace_all };
    const count = await turns.take(() => replaceText(sandbox.files, path, replacement, { signal }));
    return count === 1 ? `edited ${path}` : `edited ${path} in ${count} places`;
  },
});
