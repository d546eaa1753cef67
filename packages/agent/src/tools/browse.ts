import { clip, keepEnds } from "@agentfense/sdk/tool-kit";
import type { BrowserActionName } from "../browser/action.ts";
import type { BrowsingResult } from "./parts.ts";
import { type ToolContext, type ToolEffects, ToolFailure, type ToolResult } from "./tool.ts";

/** A larger picture than this no model takes. */
const LARGEST_SCREENSHOT_BYTES = 5 * 1024 * 1024;

/** It looks at a page that is there. */
export const LOOKS: ToolEffects = { readOnly: true, destructive: false, openWorld: true };
/** It does something on a page, and nobody knows what the site makes of it. */
export const ACTS: ToolEffects = { readOnly: false, destructive: true, openWorld: true };

/** Hands an action to the browser and tells what came of it. */
export async function browse(
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
