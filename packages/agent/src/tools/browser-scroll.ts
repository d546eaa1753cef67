import { z } from "zod";
import { browse, LOOKS } from "./browse.ts";
import { declareTool } from "./tool.ts";

export const browserScroll = declareTool({
  name: "browser_scroll",
  description: "Scrolls the page, or an element into view.",
  input: z.strictObject({
    x: z.number().min(-1_000_000).max(1_000_000).optional().describe("Pixels to the right"),
    y: z.number().min(-1_000_000).max(1_000_000).optional().describe("Pixels down"),
    selector: z.string().min(1).max(10_000).optional().describe("What to scroll into view"),
  }),
  risk: "assessed",
  effects: LOOKS,
  needs: "browser",
  handler: (input, context) => browse(context, "scroll", input),
});
