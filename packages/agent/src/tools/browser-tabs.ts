import { z } from "zod";
import { ACTS, browse } from "./browse.ts";
import { declareTool } from "./tool.ts";

export const browserTabs = declareTool({
  name: "browser_tabs",
  description: "Lists the tabs, opens one, goes to one, or closes one.",
  input: z.strictObject({
    op: z.enum(["list", "new", "activate", "close"]).describe("What to do"),
    index: z.int().min(0).max(1000).optional().describe("Which tab, for activate and close"),
    url: z.string().min(1).max(10_000).optional().describe("What to open in a new one"),
  }),
  risk: "assessed",
  effects: ACTS,
  needs: "browser",
  handler: (input, context) => browse(context, "tabs", input),
});
