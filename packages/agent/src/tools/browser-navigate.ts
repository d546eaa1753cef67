import { z } from "zod";
import { ACTS, browse } from "./browse.ts";
import { declareTool } from "./tool.ts";

export const browserNavigate = declareTool({
  name: "browser_navigate",
  description: "Opens an address in the browser.",
  input: z.strictObject({
    url: z.string().min(1).max(10_000).describe("https://…, or file:///workspace/… for a file of the workspace"),
    wait_until: z.enum(["load", "domcontentloaded", "networkidle", "commit"]).optional().describe("Until when to wait"),
    timeout_ms: z.int().min(1).max(120_000).optional().describe("How long to wait"),
  }),
  risk: "assessed",
  effects: ACTS,
  needs: "browser",
  handler: (input, context) =>
    browse(context, "navigate", { url: input.url, waitUntil: input.wait_until, timeoutMs: input.timeout_ms }),
});
