import { z } from "zod";
import { keepLines } from "./bounds.ts";
import { declareTool } from "./declaration.ts";

export const changes = declareTool({
  description: "Lists what was changed in the workspace so far and has not been handed over.",
  input: z.strictObject({}),
  readOnly: true,
  run: async (_, { sandbox, maxOutput, signal }) => {
    const lines: string[] = [];
    for await (const { kind, path, oldPath } of sandbox.changes({ signal })) {
      lines.push(`${kind} ${path.slice(1)}${oldPath === "" ? "" : ` (was ${oldPath.slice(1)})`}`);
    }
    return lines.length === 0 ? "(nothing)" : keepLines(lines, maxOutput, "these are the first");
  },
});
