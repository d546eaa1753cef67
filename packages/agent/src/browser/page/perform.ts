import type { CDPSession, Page } from "playwright-core";
import { BrowserError } from "../../errors.ts";
import type { Workspace } from "../../workspace/workspace.ts";
import type { BrowserActionName, BrowserParams, CheckedAction } from "../action.ts";
import type { UrlPolicy } from "../url/policy.ts";
import { type Download, downloadAnswer, downloadByClick } from "./download.ts";
import { navigate, travel } from "./navigate.ts";
import { evaluated, htmlOf, markdownOfPart, textOf } from "./read.ts";
import type { BrowserTab, Tabs } from "./tabs.ts";

/** What an action works on. */
export interface ActionTarget {
  readonly tabs: Tabs;
  /** The browser's own. */
  readonly session: CDPSession;
  readonly downloadDirectory: string;
  readonly workspace: Workspace;
  readonly timeoutMs: number;
  readonly maxDownloadBytes: number;
}

/** What an action gives, besides where the page is afterwards. */
export interface Yield {
  readonly text?: string;
  readonly data?: unknown;
  readonly screenshot?: Uint8Array;
  readonly tabs?: readonly BrowserTab[];
}

type Perform<Name extends BrowserActionName> = (target: ActionTarget, params: BrowserParams<Name>) => Promise<Yield>;

/** How each action is done. What cannot be done throws. */
export const PERFORMANCES: { readonly [Name in BrowserActionName]: Perform<Name> } = {
  async navigate(target, { url, waitUntil }) {
    return { data: await navigate(await target.tabs.active(), url, { waitUntil, timeout: target.timeoutMs }) };
  },
  async back({ tabs, timeoutMs }) {
    return { data: await travel((options) => tabs.active().then((page) => page.goBack(options)), timeoutMs) };
  },
  async forward({ tabs, timeoutMs }) {
    return { data: await travel((options) => tabs.active().then((page) => page.goForward(options)), timeoutMs) };
  },
  async reload({ tabs, timeoutMs }) {
    return { data: await travel((options) => tabs.active().then((page) => page.reload(options)), timeoutMs) };
  },
  async click({ tabs, timeoutMs: timeout }, { selector, x = 0, y = 0 }) {
    const page = await tabs.active();
    if (selector === undefined) await page.mouse.click(x, y);
    else await page.click(selector, { timeout });
    return {};
  },
  async fill({ tabs, timeoutMs: timeout }, { selector, text }) {
    await (await tabs.active()).fill(selector, text, { timeout });
    return {};
  },
  async press({ tabs, timeoutMs: timeout }, { key, selector }) {
    const page = await tabs.active();
    if (selector === undefined) await page.keyboard.press(key);
    else await page.press(selector, key, { timeout });
    return {};
  },
  async scroll({ tabs, timeoutMs: timeout }, { selector, x = 0, y = 0 }) {
    const page = await tabs.active();
    if (selector === undefined) await page.evaluate(`window.scrollBy({ left: ${x}, top: ${y}, behavior: "instant" })`);
    else await page.locator(selector).first().scrollIntoViewIfNeeded({ timeout });
    return {};
  },
  async text({ tabs, timeoutMs }, { selector }) {
    return { text: await textOf(await tabs.active(), { selector, timeoutMs }) };
  },
  async markdown({ tabs, timeoutMs }, { selector }) {
    return { text: await markdownOfPart(await tabs.active(), { selector, timeoutMs }) };
  },
  async html({ tabs, timeoutMs }, { selector }) {
    return { text: await htmlOf(await tabs.active(), { selector, timeoutMs }) };
  },
  async screenshot({ tabs, workspace, timeoutMs: timeout }, { fullPage = false, path, format = "png", quality }) {
    const options = { type: format, fullPage, timeout, ...(quality !== undefined && { quality }) };
    const screenshot = await (await tabs.active()).screenshot(options);
    if (path !== undefined) await workspace.writeFile(path, screenshot);
    return { screenshot, ...(path !== undefined && { data: { path, bytes: screenshot.length } }) };
  },
  async evaluate({ tabs }, { expression }) {
    return { data: await evaluated(await tabs.active(), expression) };
  },
  async wait({ tabs, timeoutMs: timeout }, { selector, ms, state }) {
    const page = await tabs.active();
    if (selector !== undefined) await page.waitForSelector(selector, { timeout });
    if (ms !== undefined) await page.waitForTimeout(ms);
    if (state !== undefined) await page.waitForLoadState(state, { timeout });
    return {};
  },
  async tabs(target, { op, index = 0, url }) {
    const { tabs } = target;
    if (op === "activate") await tabs.activate(index);
    if (op === "close") await tabs.close(index);
    const page = op === "new" ? await tabs.open() : undefined;
    if (page !== undefined && url !== undefined) await navigate(page, url, { timeout: target.timeoutMs });
    return { tabs: await tabs.list() };
  },
  async download(target, { url, selector = "", path }) {
    const { content, url: from } = await (url === undefined ? clicked(target, selector) : fetched(target, url));
    await target.workspace.writeFile(path, content);
    return { data: { path, bytes: content.length, url: from } };
  },
};

async function fetched({ tabs, maxDownloadBytes: maxBytes, timeoutMs }: ActionTarget, url: string): Promise<Download> {
  return await tabs.beside((page) => downloadAnswer(page, url, { maxBytes, timeoutMs }));
}

async function clicked(target: ActionTarget, selector: string): Promise<Download> {
  const { session, timeoutMs, maxDownloadBytes: maxBytes, downloadDirectory: directory } = target;
  const page: Page = await target.tabs.active();
  const click = () => page.click(selector, { timeout: timeoutMs });
  return await downloadByClick(page, click, { session, directory, maxBytes, timeoutMs });
}

/** Where an action wants to go, it must be allowed to. Every request on the way is looked at again. */
export function checkDestination(policy: UrlPolicy, { params }: CheckedAction): void {
  if (!("url" in params) || params.url === undefined) return;
  const verdict = policy.judgeDestination(params.url);
  if (!verdict.allowed) throw new BrowserError("URL_NOT_ALLOWED", `${params.url.slice(0, 2048)}: ${verdict.reason}`);
}
