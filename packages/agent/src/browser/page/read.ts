import type { Page } from "playwright-core";
import { BrowserError } from "../../errors.ts";
import { markdownOf } from "./markdown.ts";

/** How much is handed on of a page's text, and of a value of its code. */
const MAX_TEXT_CHARACTERS = 256 * 1024;
const MAX_DEPTH = 200;

/** Where to look, and for how long until it is there. */
export interface Part {
  readonly selector?: string | undefined;
  readonly timeoutMs: number;
}

// Each is cut in the page, so that a page without end does not come here as a whole.

export async function textOf(page: Page, { selector = "body", timeoutMs: timeout }: Part): Promise<string> {
  const read = (element: { readonly innerText?: unknown; readonly textContent?: unknown }, most: number): string =>
    String(element.innerText ?? element.textContent ?? "").slice(0, most);
  return shortened(await page.locator(selector).first().evaluate(read, MAX_TEXT_CHARACTERS, { timeout }));
}

export async function htmlOf(page: Page, { selector = "html", timeoutMs: timeout }: Part): Promise<string> {
  const read = (element: { readonly outerHTML?: unknown }, most: number): string =>
    String(element.outerHTML ?? "").slice(0, most);
  return shortened(await page.locator(selector).first().evaluate(read, MAX_TEXT_CHARACTERS, { timeout }));
}

export async function markdownOfPart(page: Page, { selector = "body", timeoutMs: timeout }: Part): Promise<string> {
  const limits = { characters: MAX_TEXT_CHARACTERS, depth: MAX_DEPTH };
  return shortened(await page.locator(selector).first().evaluate(markdownOf, limits, { timeout }));
}

/** The value of an expression, if JSON has a word for it. */
export async function evaluated(page: Page, expression: string): Promise<unknown> {
  const text = JSON.stringify(await page.evaluate(expression));
  if (text === undefined) return undefined;
  if (text.length <= MAX_TEXT_CHARACTERS) return JSON.parse(text) as unknown;
  throw new BrowserError("ACTION_FAILED", `the value is too large: ${text.length} characters as JSON`, {
    hint: `let the expression give less than ${MAX_TEXT_CHARACTERS}`,
  });
}

/** What comes from a page is what the page wants it to be. */
function shortened(text: unknown): string {
  return String(text).slice(0, MAX_TEXT_CHARACTERS);
}
