import { z } from "zod";
import { ACTS, browse } from "./browse.ts";
import { declareTool } from "./tool.ts";

export const browserClick = declareTool({
  name: "browser_click",
  description: "Clicks on an element of the page, or on a place of it.",
  input: z.strictObject({
    selector: z.string().min(1).max(10_000).optional().describe("A CSS selector, or text=…"),
    x: z.number().min(0).max(100_000).optional().describe("Instead of a selector: pixels from the left"),
    y: z.number().min(0).max(100_000).optional().describe("Instead of a selector: pixels from the top"),
  }),
  risk: "assessed",
  effects: ACTS,
  needs: "browser",
  handler: (input, context) => browse(context, "click", input),
});
