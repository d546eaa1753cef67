import { z } from "zod";
import type { ChangeCounts } from "../../model/records.ts";
import { keepLines } from "./bounds.ts";
import { declareTool } from "./declaration.ts";

/** "200 added, 3 deleted" */
function countsText(counts: ChangeCounts): string {
  const kinds = ["added", "modified", "deleted", "renamed"] as const;
  return kinds.flatMap((kind) => (counts[kind] === 0 ? [] : [`${counts[kind]} ${kind}`])).join(", ");
}

export const changes = declareTool({
  description: "Lists what was changed in the workspace so far and has not been handed over.",
  input: z.strictObject({}),
  readOnly: true,
  run: async (_, { sandbox, maxOutput, signal }) => {
    const lines: string[] = [];
    for await (const { kind, path, oldPath, folded } of sandbox.changes({ fold: true, signal })) {
      if (folded !== undefined) lines.push(`ignored by git in ${path.slice(1) || "."}: ${countsText(folded)}`);
      else lines.push(`${kind} ${path.slice(1)}${oldPath === "" ? "" : ` (was ${oldPath.slice(1)})`}`);
    }
    return lines.length === 0 ? "(nothing)" : keepLines(lines, maxOutput, "these are the first");
  },
});
