import { z } from "zod";
import { ACTS, browse } from "./browse.ts";
import { declareTool } from "./tool.ts";

export const browserEvaluate = declareTool({
  name: "browser_evaluate",
  description: "Evaluates a JavaScript expression in the page and gives its value.",
  input: z.strictObject({
    expression: z.string().min(1).max(100_000).describe("document.title, or (() => { … })()"),
  }),
  risk: "assessed",
  effects: ACTS,
  needs: "browser",
  handler: (input, context) => browse(context, "evaluate", input),
});
