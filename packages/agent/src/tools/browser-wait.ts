import { z } from "zod";
import { browse, LOOKS } from "./browse.ts";
import { declareTool } from "./tool.ts";

export const browserWait = declareTool({
  name: "browser_wait",
  description: "Waits for an element, for a state of the page, or for some time.",
  input: z.strictObject({
    selector: z.string().min(1).max(10_000).optional().describe("Until this is there"),
    ms: z.int().min(1).max(60_000).optional().describe("For so many milliseconds"),
    state: z.enum(["load", "domcontentloaded", "networkidle"]).optional().describe("Until the page is so far"),
  }),
  risk: "assessed",
  effects: LOOKS,
  needs: "browser",
  handler: (input, context) => browse(context, "wait", input),
});
