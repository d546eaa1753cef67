import type { BrowserContext, CDPSession } from "playwright-core";
import { BrowserError } from "../errors.ts";
import type { ChromiumProcess } from "./chromium/process.ts";
import { PipeTransport } from "./chromium/transport.ts";
import { type BlockedRequest, guardRequests } from "./guard.ts";
import { Tabs } from "./page/tabs.ts";
import type { UrlPolicy } from "./url/policy.ts";

/** Playwright would make a directory for videos and the like, of which there are none. */
const NOWHERE = "/nonexistent";

/** A browser with an empty profile, ready for tabs. */
export interface OpenBrowser {
  readonly tabs: Tabs;
  /** The browser's own, for what playwright has no words for. */
  readonly session: CDPSession;
  readonly downloadDirectory: string;
  isOpen(): boolean;
}

/** Connects to a browser that runs. It ends with its process; there is nothing else to close. */
export async function openBrowser(
  chromium: ChromiumProcess,
  options: {
    readonly policy: UrlPolicy;
    readonly viewport: { readonly width: number; readonly height: number };
    readonly onBlocked: (request: BlockedRequest) => void;
    readonly credentials?: { readonly username: string; readonly password: string } | undefined;
  },
): Promise<OpenBrowser> {
  const { viewport } = options;
  const playwright = await import("playwright-core");
  const transport = new PipeTransport(chromium);
  try {
    const connection = { noDefaults: true, timeout: 0, artifactsDir: NOWHERE };
    const browser = await playwright.chromium.connectOverCDP(transport, connection);
    await guardRequests(browser, options);
    const context: BrowserContext = await browser.newContext({
      viewport: { ...viewport },
      acceptDownloads: false,
      // They would make requests when no page is there to be seen.
      serviceWorkers: "block",
    });
    // None of these, and all others are refused.
    await context.grantPermissions([]);
    const tabs = new Tabs(context);
    const session = await browser.newBrowserCDPSession();
    const { downloadDirectory } = chromium;
    return { tabs, session, downloadDirectory, isOpen: () => browser.isConnected() };
  } catch (cause) {
    const problem = transport.closedBecause ?? String(cause);
    throw new BrowserError("UNAVAILABLE", `the browser cannot be used: ${problem}`, { cause });
  }
}

/** Throws where what drives browsers, which is large and installed by those who want one, is not there. */
export function requirePlaywright(): void {
  try {
    import.meta.resolve("playwright-core");
  } catch (cause) {
    throw new BrowserError("UNAVAILABLE", "a browser needs the package playwright-core, which is not installed", {
      hint: "npm install playwright-core",
      cause,
    });
  }
}

/** Rejects as soon as the signal says so; what was begun goes on, and nobody looks at its end. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  promise.catch(() => {});
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
