import { z } from "zod";
import type { Workspace } from "../workspace/workspace.ts";
import { decodeText } from "./text-file.ts";
import { declareTool, ToolFailure } from "./tool.ts";
import { workspacePath } from "./workspace-path.ts";

const LARGEST_EDITED_BYTES = 10 * 1024 * 1024;

export const editFile = declareTool({
  name: "edit_file",
  description:
    "Replaces text in a file of the workspace. The old text must be there exactly as given, white space included, and only once " +
    "unless all are to be replaced.",
  input: z.strictObject({
    path: z.string().min(1).describe("Relative to /workspace"),
    old_text: z.string().min(1).describe("What to replace, with enough around it to be the only such place"),
    new_text: z.string().describe("What to put there"),
    replace_all: z.boolean().optional().describe("Replace every such place; default false"),
  }),
  risk: "LOW",
  effects: { readOnly: false, destructive: true, openWorld: false },
  handler: async ({ path, old_text: oldText, new_text: newText, replace_all: all = false }, { workspace, turns }) => {
    const count = await turns.take(() => replaceText(workspace, path, { oldText, newText, all }));
    return { text: count === 1 ? `edited ${path}` : `edited ${path} in ${count} places` };
  },
});

/** Gives the number of places. */
async function replaceText(
  workspace: Workspace,
  path: string,
  { oldText, newText, all }: { readonly oldText: string; readonly newText: string; readonly all: boolean },
): Promise<number> {
  const place = workspacePath(path);
  const { size } = await workspace.stat(place);
  if (size > LARGEST_EDITED_BYTES) throw new ToolFailure(`${path} is too large to be edited in this way`);
  const parts = decodeText(await workspace.readFileBytes(place), path).split(oldText);
  const count = parts.length - 1;
  if (count === 0) throw new ToolFailure(`the old text is not in ${path}: it must be there exactly as given`);
  if (count > 1 && !all) {
    throw new ToolFailure(`the old text is in ${path} ${count} times: give more of what is around it, or replace all`);
  }
  if (count * newText.length > LARGEST_EDITED_BYTES) throw new ToolFailure(`${path} would become too large`);
  await workspace.writeFile(place, parts.join(newText));
  return count;
}
