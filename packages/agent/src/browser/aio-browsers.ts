import { type AioBrowser, type AioBrowserInfo, AioRefusal } from "@agentfense/doors";
import type { Sandbox } from "@agentfense/sdk";
import { SandboxWorkspace } from "../workspace/sandbox-workspace.ts";
import type { BrowserAction } from "./action.ts";
import type { BrowserRouterOptions } from "./options.ts";
import type { BrowserResult } from "./result.ts";
import { BrowserRouter } from "./router.ts";

export interface AioBrowsersOptions
  extends Pick<BrowserRouterOptions, "urls" | "executablePath" | "viewport" | "actionTimeoutMs"> {
  /** How many browsers all sandboxes may have together; default 8. */
  readonly maxBrowsers?: number | undefined;
  /** A browser that nobody used for so long is closed; default 10 minutes. */
  readonly idleMs?: number | undefined;
}

const MAX_BROWSERS = 8;
const IDLE_MS = 10 * 60_000;
const VIEWPORT = { width: 1280, height: 720 };
/** What went wrong, as AIO clients know it. */
const STATUSES: Readonly<Partial<Record<string, number>>> = {
  URL_NOT_ALLOWED: 403,
  INVALID_ACTION: 400,
  UNAVAILABLE: 503,
};

/** The browsers behind an AIO door: one in each sandbox, for as long as somebody uses it. */
export class AioBrowsers implements AioBrowser, AsyncDisposable {
  readonly #options: AioBrowsersOptions;
  readonly #browsers = new Map<string, { readonly router: BrowserRouter; readonly idle: NodeJS.Timeout }>();
  readonly #closing = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: AioBrowsersOptions = {}) {
    this.#options = options;
  }

  async info(sandbox: Sandbox, { signal }: { readonly signal: AbortSignal }): Promise<AioBrowserInfo> {
    const expression = "navigator.userAgent";
    const { data } = await this.#do(sandbox, { action: "evaluate", params: { expression } }, signal);
    // The debugging protocol would do what the URL rules forbid.
    return { userAgent: String(data), cdpUrl: "", viewport: this.#options.viewport ?? VIEWPORT };
  }

  async screenshot(sandbox: Sandbox, options: Parameters<AioBrowser["screenshot"]>[1]): Promise<Uint8Array> {
    const { format, quality, signal } = options;
    const params = format === "jpeg" ? { format, quality } : { format };
    const { screenshot } = await this.#do(sandbox, { action: "screenshot", params }, signal);
    return screenshot ?? new Uint8Array();
  }

  async navigate(
    sandbox: Sandbox,
    options: Parameters<AioBrowser["navigate"]>[1],
  ): Promise<Awaited<ReturnType<AioBrowser["navigate"]>>> {
    const { url, waitUntil, timeoutMs, signal } = options;
    const params = { url, waitUntil, timeoutMs: Math.ceil(timeoutMs) };
    const result = await this.#do(sandbox, { action: "navigate", params }, signal);
    return {
      url: result.url ?? url,
      title: result.title,
      status: (result.data as { status?: number } | undefined)?.status,
    };
  }

  /** Ends all browsers. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const sandboxId of [...this.#browsers.keys()]) this.#end(sandboxId);
    await Promise.all(this.#closing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #do(sandbox: Sandbox, action: BrowserAction, signal: AbortSignal): Promise<BrowserResult> {
    const result = await this.#routerOf(sandbox).execute(action, { needsFileAccess: true }, { signal });
    if (result.success) return result;
    throw new AioRefusal(result.error ?? "it did not work", { status: STATUSES[result.errorCode ?? ""] ?? 200 });
  }

  #routerOf(sandbox: Sandbox): BrowserRouter {
    if (this.#isClosed) throw new AioRefusal("the browsers are closed", { status: 503 });
    const { maxBrowsers = MAX_BROWSERS, idleMs = IDLE_MS } = this.#options;
    const found = this.#browsers.get(sandbox.id);
    if (found !== undefined) {
      found.idle.refresh();
      return found.router;
    }
    if (this.#browsers.size >= maxBrowsers) {
      const hint = "one that nobody uses is closed after a while";
      throw new AioRefusal(`there are ${maxBrowsers} browsers already`, { status: 429, hint });
    }
    const router = new BrowserRouter(`aio-${sandbox.id}`, {
      ...this.#options,
      sandbox,
      workspace: new SandboxWorkspace(sandbox),
    });
    const idle = setTimeout(() => this.#end(sandbox.id), idleMs).unref();
    this.#browsers.set(sandbox.id, { router, idle });
    return router;
  }

  #end(sandboxId: string): void {
    const ended = this.#browsers.get(sandboxId);
    this.#browsers.delete(sandboxId);
    if (ended === undefined) return;
    clearTimeout(ended.idle);
    // That a browser of a sandbox which is gone cannot be closed properly is no news.
    const closing = ended.router.close().catch(() => {});
    this.#closing.add(closing);
    void closing.then(() => this.#closing.delete(closing));
  }
}
