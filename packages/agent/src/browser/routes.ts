import { Sandbox } from "@agentfense/sdk";
import { BrowserError } from "../errors.ts";
import { startExternal } from "./chromium/external.ts";
import { startInside } from "./chromium/inside.ts";
import { EgressProxy } from "./chromium/proxy.ts";
import type { BlockedRequest } from "./guard.ts";
import { type OpenBrowser, openBrowser, requirePlaywright, unlessAborted } from "./open-browser.ts";
import type { BrowserRouterOptions } from "./options.ts";
import type { BrowserContext, BrowserRoute } from "./result.ts";
import { UrlPolicy } from "./url/policy.ts";

/** A browser, and all that has to go when it goes. */
export interface RoutedBrowser extends OpenBrowser {
  readonly route: BrowserRoute;
  readonly belongings: AsyncDisposableStack;
}

/** Files, and pages that nobody knows, are for the sandbox. */
export function routeOf({ needsFileAccess = false, isResearch = false }: BrowserContext): BrowserRoute {
  return needsFileAccess || isResearch ? "sandbox" : "external";
}

const VIEWPORT = { width: 1280, height: 720 };

export async function openRoute(
  route: BrowserRoute,
  options: BrowserRouterOptions,
  hooks: OpeningHooks,
): Promise<RoutedBrowser> {
  requirePlaywright();
  await using belongings = new AsyncDisposableStack();
  const open = { sandbox: openInside, external: openExternal }[route];
  const browser = await open(belongings, options, hooks);
  return { ...browser, route, belongings: belongings.move() };
}

interface OpeningHooks {
  readonly onBlocked: (request: BlockedRequest) => void;
  /** Ends the opening, and has nothing to say afterwards. */
  readonly signal: AbortSignal;
}

type Opening = (
  belongings: AsyncDisposableStack,
  options: BrowserRouterOptions,
  hooks: OpeningHooks,
) => Promise<OpenBrowser>;

const openExternal: Opening = async (belongings, options, { onBlocked, signal }) => {
  const { executablePath, urls = {}, viewport = VIEWPORT } = options;
  const policy = new UrlPolicy(urls, "external");
  const proxy = belongings.use(
    await EgressProxy.listen(policy, (url, reason) => onBlocked({ url, reason, isDocument: true })),
  );
  const chromium = belongings.use(await startExternal({ executablePath, proxy: proxy.address }));
  const { credentials } = proxy;
  return await unlessAborted(openBrowser(chromium, { policy, viewport, onBlocked, credentials }), signal);
};

const openInside: Opening = async (belongings, options, { onBlocked, signal }) => {
  const { executablePath, urls = {}, viewport = VIEWPORT } = options;
  const sandbox = options.sandbox ?? belongings.use(await ownSandbox(options, signal));
  const chromium = belongings.use(await startInside(sandbox, { executablePath, urls, signal }));
  const policy = new UrlPolicy(urls, "sandbox");
  return await unlessAborted(openBrowser(chromium, { policy, viewport, onBlocked }), signal);
};

async function ownSandbox(options: BrowserRouterOptions, signal: AbortSignal): Promise<Sandbox> {
  const { workspace, sandboxes = Sandbox, sandboxOptions, network = "none" } = options;
  if (workspace.directory === undefined) {
    const hint = "give the BrowserRouter the sandbox of that workspace";
    throw new BrowserError("UNAVAILABLE", "the workspace is no directory to open a sandbox on", { hint });
  }
  // What a workspace says about its own rules may be written by whom they are to hold.
  return await sandboxes.fromLocal(workspace.directory, { policy: false, ...sandboxOptions, network, signal });
}
