import { clip, keepEnds, type ToolEffects, ToolFailure, type ToolResult } from "@agentfense/sdk/tool-kit";
import { z } from "zod";
import type { BrowserActionName } from "../browser/action.ts";
import { workspacePath } from "./files.ts";
import { type BrowsingResult, declareTool, type Tool, type ToolContext } from "./tool.ts";

/** It looks at a page that is there. */
const LOOKS: ToolEffects = { readOnly: true, destructive: false, openWorld: true };
/** It does something on a page, and nobody knows what the site makes of it. */
const ACTS: ToolEffects = { readOnly: false, destructive: true, openWorld: true };

const selector = z.string().min(1).max(10_000);
const url = selector;

/** The router assesses what is done, and asks. */
function browserTool<Schema extends z.ZodObject>(
  tool: Omit<Parameters<typeof declareTool<Schema>>[0], "risk" | "needs">,
): Tool {
  return declareTool<Schema>({ ...tool, risk: "assessed", needs: "browser" });
}

/** In the order in which a model is shown them. */
export const BROWSER_TOOLS: readonly Tool[] = [
  browserTool({
    name: "browser_navigate",
    description: "Opens an address in the browser.",
    input: z.strictObject({
      url: url.describe("https://…, or file:///workspace/… for a file of the workspace"),
      wait_until: z
        .enum(["load", "domcontentloaded", "networkidle", "commit"])
        .optional()
        .describe("Until when to wait"),
      timeout_ms: z.int().min(1).max(120_000).optional().describe("How long to wait"),
    }),
    effects: ACTS,
    handler: (input, context) =>
      browse(context, "navigate", { url: input.url, waitUntil: input.wait_until, timeoutMs: input.timeout_ms }),
  }),
  browserTool({
    name: "browser_click",
    description: "Clicks on an element of the page, or on a place of it.",
    input: z.strictObject({
      selector: selector.optional().describe("A CSS selector, or text=…"),
      x: z.number().min(0).max(100_000).optional().describe("Instead of a selector: pixels from the left"),
      y: z.number().min(0).max(100_000).optional().describe("Instead of a selector: pixels from the top"),
    }),
    effects: ACTS,
    handler: (input, context) => browse(context, "click", input),
  }),
  browserTool({
    name: "browser_fill",
    description: "Fills a field of the page with a text.",
    input: z.strictObject({
      selector: selector.describe("A CSS selector, or text=…"),
      text: z.string().max(1_000_000).describe("What to put there, instead of what there is"),
    }),
    effects: ACTS,
    handler: (input, context) => browse(context, "fill", input),
  }),
  browserTool({
    name: "browser_press",
    description: "Presses a key, or several together.",
    input: z.strictObject({
      key: z.string().min(1).max(100).describe("Enter, Tab, ArrowDown, a, Control+a …"),
      selector: selector.optional().describe("Where; default: what has the focus"),
    }),
    effects: ACTS,
    handler: (input, context) => browse(context, "press", input),
  }),
  browserTool({
    name: "browser_scroll",
    description: "Scrolls the page, or an element into view.",
    input: z.strictObject({
      x: z.number().min(-1_000_000).max(1_000_000).optional().describe("Pixels to the right"),
      y: z.number().min(-1_000_000).max(1_000_000).optional().describe("Pixels down"),
      selector: selector.optional().describe("What to scroll into view"),
    }),
    effects: LOOKS,
    handler: (input, context) => browse(context, "scroll", input),
  }),
  browserTool({
    name: "browser_text",
    description: "Gives the text of the page, or of a part of it.",
    input: z.strictObject({
      selector: selector.optional().describe("A CSS selector; default: the whole page"),
      format: z
        .enum(["text", "markdown"])
        .optional()
        .describe("Default text; markdown keeps headings, lists and links"),
    }),
    effects: LOOKS,
    handler: ({ selector, format = "text" }, context) => browse(context, format, { selector }),
  }),
  browserTool({
    name: "browser_screenshot",
    description: "Takes a picture of the page, and saves it too if a path is given.",
    input: z.strictObject({
      full_page: z.boolean().optional().describe("All of the page, not only what is in view; default false"),
      path: z.string().min(1).max(4096).optional().describe("Where to save it as PNG, relative to /workspace"),
    }),
    effects: ACTS,
    handler: ({ full_page: fullPage, path }, context) =>
      browse(context, "screenshot", { fullPage, path: path === undefined ? undefined : workspacePath(path) }),
  }),
  browserTool({
    name: "browser_evaluate",
    description: "Evaluates a JavaScript expression in the page and gives its value.",
    input: z.strictObject({
      expression: z.string().min(1).max(100_000).describe("document.title, or (() => { … })()"),
    }),
    effects: ACTS,
    handler: (input, context) => browse(context, "evaluate", input),
  }),
  browserTool({
    name: "browser_wait",
    description: "Waits for an element, for a state of the page, or for some time.",
    input: z.strictObject({
      selector: selector.optional().describe("Until this is there"),
      ms: z.int().min(1).max(60_000).optional().describe("For so many milliseconds"),
      state: z.enum(["load", "domcontentloaded", "networkidle"]).optional().describe("Until the page is so far"),
    }),
    effects: LOOKS,
    handler: (input, context) => browse(context, "wait", input),
  }),
  browserTool({
    name: "browser_tabs",
    description: "Lists the tabs, opens one, goes to one, or closes one.",
    input: z.strictObject({
      op: z.enum(["list", "new", "activate", "close"]).describe("What to do"),
      index: z.int().min(0).max(1000).optional().describe("Which tab, for activate and close"),
      url: url.optional().describe("What to open in a new one"),
    }),
    effects: ACTS,
    handler: (input, context) => browse(context, "tabs", input),
  }),
  browserTool({
    name: "browser_download",
    description: "Downloads a file into the workspace: an address, or what a click on an element gives.",
    input: z.strictObject({
      url: url.optional().describe("http:// or https://"),
      selector: selector.optional().describe("Instead of an address: what to click on"),
      path: z.string().min(1).max(4096).describe("Where to put it, relative to /workspace"),
    }),
    effects: ACTS,
    handler: (input, context) => browse(context, "download", { ...input, path: workspacePath(input.path) }),
  }),
];

/** A larger picture than this no model takes. */
const LARGEST_SCREENSHOT_BYTES = 5 * 1024 * 1024;

/** Hands an action to the browser and tells what came of it. */
async function browse(
  { browser, browsing, maxOutput, signal }: ToolContext,
  action: BrowserActionName,
  given: Readonly<Record<string, unknown>>,
): Promise<ToolResult> {
  if (browser === undefined) throw new ToolFailure("there is no browser here");
  const params = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const result = await browser.execute({ action, params }, browsing, { signal });
  return browsingAnswer(result, maxOutput);
}

function browsingAnswer(result: BrowsingResult, maxOutput: number): ToolResult {
  const { success, url, title, errorCode } = result;
  const data = { success, url, title, errorCode, ...(result.data !== undefined && { data: result.data }) };
  if (!success) return { text: keepEnds(result.error ?? "it did not work", maxOutput), isError: true, data };
  const { screenshot } = result;
  const isTooLarge = screenshot !== undefined && screenshot.length > LARGEST_SCREENSHOT_BYTES;
  const parts = [
    ...(url === undefined ? [] : [`[${title ? `${title} — ` : ""}${url}]`]),
    ...(result.text === undefined ? [] : [result.text || "(no text)"]),
    ...(result.data === undefined ? [] : [JSON.stringify(result.data, undefined, 1) ?? ""]),
    ...(result.tabs === undefined ? [] : [result.tabs.map(lineFor).join("\n") || "(no tabs)"]),
    ...(result.blocked ?? []).map(({ url: blocked, reason }) => `[not loaded: ${clip(blocked, 200)}: ${reason}]`),
    ...(isTooLarge ? ["[the picture is too large to be shown here: save it with path]"] : []),
  ];
  return {
    text: keepEnds(parts.join("\n"), maxOutput) || "done",
    isError: false,
    data,
    ...(screenshot !== undefined && !isTooLarge && { images: [{ data: screenshot, mimeType: "image/png" }] }),
  };
}

function lineFor({ url, title, active }: NonNullable<BrowsingResult["tabs"]>[number], index: number): string {
  return `${active ? "*" : " "} ${index}: ${title || "(no title)"} ${url}`;
}
