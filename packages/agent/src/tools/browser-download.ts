import { z } from "zod";
import { ACTS, browse } from "./browse.ts";
import { declareTool } from "./tool.ts";
import { workspacePath } from "./workspace-path.ts";

export const browserDownload = declareTool({
  name: "browser_download",
  description: "Downloads a file into the workspace: an address, or what a click on an element gives.",
  input: z.strictObject({
    url: z.string().min(1).max(10_000).optional().describe("http:// or https://"),
    selector: z.string().min(1).max(10_000).optional().describe("Instead of an address: what to click on"),
    path: z.string().min(1).max(4096).describe("Where to put it, relative to /workspace"),
  }),
  risk: "assessed",
  effects: ACTS,
  needs: "browser",
  handler: (input, context) => browse(context, "download", { ...input, path: workspacePath(input.path) }),
});
