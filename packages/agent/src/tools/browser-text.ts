import { z } from "zod";
import { browse, LOOKS } from "./browse.ts";
import { declareTool } from "./tool.ts";

export const browserText = declareTool({
  name: "browser_text",
  description: "Gives the text of the page, or of a part of it.",
  input: z.strictObject({
    selector: z.string().min(1).max(10_000).optional().describe("A CSS selector; default: the whole page"),
    format: z.enum(["text", "markdown"]).optional().describe("Default text; markdown keeps headings, lists and links"),
  }),
  risk: "assessed",
  effects: LOOKS,
  needs: "browser",
  handler: ({ selector, format = "text" }, context) => browse(context, format, { selector }),
});
