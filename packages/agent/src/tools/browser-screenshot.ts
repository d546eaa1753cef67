import { z } from "zod";
import { ACTS, browse } from "./browse.ts";
import { declareTool } from "./tool.ts";
import { workspacePath } from "./workspace-path.ts";

export const browserScreenshot = declareTool({
  name: "browser_screenshot",
  description: "Takes a picture of the page, and saves it too if a path is given.",
  input: z.strictObject({
    full_page: z.boolean().optional().describe("All of the page, not only what is in view; default false"),
    path: z.string().min(1).max(4096).optional().describe("Where to save it as PNG, relative to /workspace"),
  }),
  risk: "assessed",
  effects: ACTS,
  needs: "browser",
  handler: ({ full_page: fullPage, path }, context) =>
    browse(context, "screenshot", { fullPage, path: path === undefined ? undefined : workspacePath(path) }),
});
