import { z } from "zod";
import { ACTS, browse } from "./browse.ts";
import { declareTool } from "./tool.ts";

export const browserPress = declareTool({
  name: "browser_press",
  description: "Presses a key, or several together.",
  input: z.strictObject({
    key: z.string().min(1).max(100).describe("Enter, Tab, ArrowDown, a, Control+a …"),
    selector: z.string().min(1).max(10_000).optional().describe("Where; default: what has the focus"),
  }),
  risk: "assessed",
  effects: ACTS,
  needs: "browser",
  handler: (input, context) => browse(context, "press", input),
});
