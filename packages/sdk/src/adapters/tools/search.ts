import { z } from "zod";
import { grep, type Match } from "../grep.ts";
import { clip, keepLines } from "./bounds.ts";
import { declareTool } from "./declaration.ts";

const DEFAULT_RESULTS = 100;
const LINE_CHARACTERS = 500;

export const search = declareTool({
  description:
    "Searches the text files of the workspace for a regular expression (POSIX extended) and gives path:line:text of each match.",
  input: z.strictObject({
    pattern: z.string().min(1).describe("What to look for within a line"),
    path: z.string().min(1).optional().describe("A directory or file, relative to /workspace; default all"),
    max_results: z.int().min(1).max(10_000).optional().describe(`How many matches to give; default ${DEFAULT_RESULTS}`),
  }),
  readOnly: true,
  run: async ({ pattern, path = "/", max_results = DEFAULT_RESULTS }, { sandbox, maxOutput, signal }) => {
    const { matches, remark } = await grep(sandbox, { pattern, path, syntax: "regular expression" }, { signal });
    const more = matches.length - max_results;
    const lines = [
      ...matches.slice(0, max_results).map(lineFor),
      ...(more > 0 ? [`[${more} more matches]`] : []),
      ...(remark === undefined ? [] : [`[${remark}]`]),
    ];
    const found = matches.length === 0 ? ["(no matches)"] : [];
    return keepLines([...found, ...lines], maxOutput, "search for less");
  },
});

function lineFor({ path, line, text }: Match): string {
  return `${path}:${line}:${clip(text, LINE_CHARACTERS)}`;
}
