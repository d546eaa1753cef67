import { setTimeout as delay } from "node:timers/promises";
import { Turns } from "@agentfense/sdk/tool-kit";
import { BrowserError, PathTraversalError } from "../errors.ts";
import { tellListener } from "../pool/events.ts";
import type { RiskAssessment } from "../types.ts";
import { checkSessionId } from "../workspace/session-directory.ts";
import { type BrowserAction, type CheckedAction, checkAction, type UncheckedBrowserAction } from "./action.ts";
import { assessAction, obtainConsent } from "./consent.ts";
import type { BlockedRequest } from "./guard.ts";
import { unlessAborted } from "./open-browser.ts";
import type { BrowserRouterOptions } from "./options.ts";
import { type ActionTarget, checkDestination, PERFORMANCES, type Yield } from "./page/perform.ts";
import { describePage } from "./page/tabs.ts";
import type { BrowserContext, BrowserHappening, BrowserResult, BrowserRoute } from "./result.ts";
import { openRoute, type RoutedBrowser, routeOf } from "./routes.ts";
import { UrlPolicy } from "./url/policy.ts";

const ACTION_TIMEOUT_MS = 30_000;
const CONFIRMATION_TIMEOUT_MS = 120_000;
const OPEN_TIMEOUT_MS = 60_000;
const MAX_DOWNLOAD_BYTES = 16 * 1024 * 1024;
/** For an action whose time is up to say so itself, and for a tab to close. */
const GRACE_MS = 2_000;
/** Told of each action. */
const MAX_BLOCKED = 20;
const UNKNOWN_RISK: RiskAssessment = { level: "LOW", detected: [] };

/**
 * The browsers of a session, of which there is one at a time: in a sandbox where files or unknown pages are
 * concerned, else on this machine. Actions are done one after the other.
 */
export class BrowserRouter implements AsyncDisposable {
  readonly sessionId: string;
  readonly #options: BrowserRouterOptions;
  readonly #policies: Readonly<Record<BrowserRoute, UrlPolicy>>;
  readonly #closing = new AbortController();
  #browser: RoutedBrowser | undefined;
  /** During the action at hand. */
  #blocked: BlockedRequest[] = [];
  readonly #turns = new Turns();

  constructor(sessionId: string, options: BrowserRouterOptions) {
    checkSessionId(sessionId);
    this.sessionId = sessionId;
    this.#options = options;
    const { urls = {} } = options;
    this.#policies = { sandbox: new UrlPolicy(urls, "sandbox"), external: new UrlPolicy(urls, "external") };
  }

  /** Where the browser that is open runs. */
  get route(): BrowserRoute | undefined {
    return this.#browser?.isOpen() === true ? this.#browser.route : undefined;
  }

  /**
   * Does one thing. What goes wrong is in the result. Aborting throws the signal's reason; since a browser takes
   * nothing back, the tab that was busy is closed.
   */
  async execute(
    action: BrowserAction | UncheckedBrowserAction,
    context: BrowserContext = {},
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<BrowserResult> {
    signal?.throwIfAborted();
    const turn = this.#turns.take(() => this.#answer(action, routeOf(context), signal));
    return await (signal === undefined ? turn : unlessAborted(turn, signal));
  }

  /** Ends the browser, and whatever it is doing. Nothing can be done afterwards. */
  async close(): Promise<void> {
    this.#closing.abort(new BrowserError("UNAVAILABLE", "the browser router is closed"));
    await this.#closeBrowser();
    await this.#turns.settled();
    // One may have been on its way.
    await this.#closeBrowser();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #answer(
    given: UncheckedBrowserAction,
    route: BrowserRoute,
    signal: AbortSignal | undefined,
  ): Promise<BrowserResult> {
    const startedAtMs = performance.now();
    let risk = UNKNOWN_RISK;
    let outcome: Omit<BrowserResult, "action" | "route" | "risk" | "durationMs">;
    this.#blocked = [];
    try {
      const checked = checkAction(given);
      const until = signal === undefined ? this.#closing.signal : AbortSignal.any([this.#closing.signal, signal]);
      until.throwIfAborted();
      risk = await assessAction(checked);
      this.#tell({ type: "assessed", action: checked.action, route, risk });
      checkDestination(this.#policies[route], checked);
      await this.#obtainConsent(checked, { route, risk, signal: until });
      const browser = await this.#browserFor(route, until);
      outcome = { success: true, ...(await this.#perform(browser, checked, until)) };
    } catch (error) {
      signal?.throwIfAborted();
      outcome = { success: false, ...failureOf(this.#closing.signal.reason ?? error, this.#blocked) };
    }
    const blocked = this.#blocked.map(({ url, reason }) => ({ url, reason }));
    const result: BrowserResult = {
      action: String(given.action).slice(0, 100),
      route,
      risk,
      ...(await this.#whereabouts(route)),
      ...(blocked.length > 0 && { blocked }),
      ...outcome,
      durationMs: performance.now() - startedAtMs,
    };
    this.#tell({ type: "finished", result });
    return result;
  }

  #obtainConsent(
    checked: CheckedAction,
    options: { readonly route: BrowserRoute; readonly risk: RiskAssessment; readonly signal: AbortSignal },
  ): Promise<void> {
    const { securityMode = "STRICT", confirmation, confirmationTimeoutMs = CONFIRMATION_TIMEOUT_MS } = this.#options;
    const tell = (happening: BrowserHappening): void => this.#tell(happening);
    const { sessionId } = this;
    const asking = { sessionId, securityMode, confirmation, timeoutMs: confirmationTimeoutMs, tell };
    return obtainConsent(checked, { ...asking, ...options });
  }

  /** The one that is open if it is of this kind, else a new one instead of it. */
  async #browserFor(route: BrowserRoute, signal: AbortSignal): Promise<RoutedBrowser> {
    const current = this.#browser;
    if (current?.isOpen() === true && current.route === route) return current;
    await this.#closeBrowser();
    signal.throwIfAborted();
    const { openTimeoutMs = OPEN_TIMEOUT_MS } = this.#options;
    // The browser outlives this action, and its signal.
    const opening = new AbortController();
    const abort = (): void => opening.abort(signal.reason);
    const tooLate = new BrowserError("UNAVAILABLE", `no browser was ready within ${openTimeoutMs} ms`);
    const timer = setTimeout(() => opening.abort(tooLate), openTimeoutMs);
    signal.addEventListener("abort", abort, { once: true });
    const opened = await openRoute(route, this.#options, {
      onBlocked: (request) => this.#noteBlocked(request),
      signal: opening.signal,
    })
      .catch((cause: unknown) => {
        const error: unknown = opening.signal.reason ?? cause;
        if (error instanceof BrowserError) throw error;
        throw new BrowserError("UNAVAILABLE", `no browser could be opened: ${error}`, { cause: error });
      })
      .finally(() => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      });
    this.#browser = opened;
    this.#tell({ type: "browser_opened", route });
    signal.throwIfAborted();
    return opened;
  }

  async #perform(browser: RoutedBrowser, { action, params }: CheckedAction, signal: AbortSignal): Promise<Yield> {
    const { workspace, actionTimeoutMs = ACTION_TIMEOUT_MS, maxDownloadBytes = MAX_DOWNLOAD_BYTES } = this.#options;
    const timeoutMs = params.timeoutMs ?? actionTimeoutMs;
    const perform = PERFORMANCES[action] as (target: ActionTarget, given: typeof params) => Promise<Yield>;
    const doing = perform({ ...browser, workspace, timeoutMs, maxDownloadBytes }, params);
    const longestMs = Math.max(timeoutMs, "ms" in params ? (params.ms ?? 0) : 0) + GRACE_MS;
    const over = AbortSignal.any([signal, AbortSignal.timeout(longestMs)]);
    try {
      return await unlessAborted(doing, over);
    } catch (error) {
      if (!over.aborted) throw error;
      await this.#interrupt(browser, doing);
      signal.throwIfAborted();
      throw new BrowserError("ACTION_FAILED", `it was not done within ${timeoutMs} ms; the tab was closed`);
    }
  }

  /** A tab that cannot be closed takes its browser with it. */
  async #interrupt(browser: RoutedBrowser, doing: Promise<unknown>): Promise<void> {
    const settled = doing.then(
      () => true,
      () => true,
    );
    const closed = browser.tabs.current?.close().then(
      () => true,
      () => true,
    );
    const inTime = (one: Promise<boolean> | undefined) =>
      Promise.race([one ?? true, delay(GRACE_MS, false, { ref: false })]);
    if (!((await inTime(closed)) && (await inTime(settled)))) await this.#closeBrowser();
  }

  async #closeBrowser(): Promise<void> {
    const browser = this.#browser;
    if (browser === undefined) return;
    this.#browser = undefined;
    await browser.belongings.disposeAsync();
    this.#tell({ type: "browser_closed", route: browser.route });
  }

  /** What is to be seen afterwards, if a browser of this kind is open. */
  async #whereabouts(route: BrowserRoute): Promise<Pick<BrowserResult, "url" | "title" | "tabs">> {
    const page = this.route === route ? this.#browser?.tabs.current : undefined;
    if (page === undefined) return {};
    const tabs = this.#browser?.tabs;
    return { ...(await describePage(page)), ...(tabs !== undefined && tabs.count > 1 && { tabs: await tabs.list() }) };
  }

  #noteBlocked(request: BlockedRequest): void {
    if (this.#blocked.length < MAX_BLOCKED) this.#blocked.push(request);
    this.#tell({ type: "request_blocked", url: request.url, reason: request.reason });
  }

  #tell(happening: BrowserHappening): void {
    tellListener(this.#options.onEvent, { sessionId: this.sessionId, at: new Date(), ...happening });
  }
}

const MAX_CHARACTERS = 2_000;

/** What went wrong, for people and for programs. */
function failureOf(
  error: unknown,
  blocked: readonly BlockedRequest[],
): Required<Pick<BrowserResult, "error" | "errorCode">> {
  const message = plainText(error instanceof Error ? error.message : String(error));
  const refused = message.includes("net::ERR_") ? blocked.find(({ isDocument }) => isDocument) : undefined;
  if (refused !== undefined) return { error: `${refused.url}: ${refused.reason}`, errorCode: "URL_NOT_ALLOWED" };
  if (error instanceof PathTraversalError) return { error: message, errorCode: "INVALID_ACTION" };
  if (!(error instanceof BrowserError)) return { error: message, errorCode: "ACTION_FAILED" };
  const hint = error.hint === undefined ? "" : ` (${error.hint})`;
  return { error: `${message}${hint}`, errorCode: error.code };
}

/** Playwright writes for terminals, and what pages say is in it. */
function plainText(message: string): string {
  return message.replace(/\x1b\[[\d;]*m/g, "").slice(0, MAX_CHARACTERS);
}
