import { z } from "zod";
import { ACTS, browse } from "./browse.ts";
import { declareTool } from "./tool.ts";

export const browserFill = declareTool({
  name: "browser_fill",
  description: "Fills a field of the page with a text.",
  input: z.strictObject({
    selector: z.string().min(1).max(10_000).describe("A CSS selector, or text=…"),
    text: z.string().max(1_000_000).describe("What to put there, instead of what there is"),
  }),
  risk: "assessed",
  effects: ACTS,
  needs: "browser",
  handler: (input, context) => browse(context, "fill", input),
});
