import { z } from "zod";
import type { FileStat } from "../../sandbox/files.ts";
import { keepLines } from "./bounds.ts";
import { declareTool } from "./declaration.ts";

export const listFiles = declareTool({
  description: "Lists a directory of the workspace. Directories end in a slash.",
  input: z.strictObject({
    path: z.string().min(1).optional().describe("Relative to /workspace; default /workspace itself"),
    recursive: z.boolean().optional().describe("With all that is below; default false"),
  }),
  readOnly: true,
  run: async ({ path = "/", recursive = false }, { sandbox, maxOutput, signal }) => {
    const entries = await sandbox.files.readdir(path, { recursive, withFileTypes: true, signal });
    if (entries.length === 0) return "(nothing)";
    return keepLines(entries.map(lineFor), maxOutput, "list a directory below");
  },
});

const ENDINGS = { file: () => "", directory: () => "/", symlink: ({ target }: FileStat) => ` -> ${target}` };

function lineFor(entry: FileStat): string {
  return entry.path.slice(1) + ENDINGS[entry.kind](entry);
}
