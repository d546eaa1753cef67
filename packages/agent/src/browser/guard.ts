import type { Browser, CDPSession } from "playwright-core";
import type { UrlPolicy } from "./url/policy.ts";

/** A request that was not made. */
export interface BlockedRequest {
  readonly url: string;
  readonly reason: string;
  /** It was to become a page or a frame. */
  readonly isDocument: boolean;
}

/** URLs can be as long as pages like. */
const SHOWN_URL_CHARACTERS = 2048;

/**
 * Looks at every request of every page, frame and worker before it is made, at each step of a redirect too. Unlike
 * playwright's own routes it listens to the browser as a whole, so nothing gets going before somebody looks.
 */
export async function guardRequests(
  browser: Browser,
  options: {
    readonly policy: UrlPolicy;
    readonly onBlocked: (request: BlockedRequest) => void;
    /** For the proxy; nobody else is told anything. */
    readonly credentials?: { readonly username: string; readonly password: string } | undefined;
  },
): Promise<void> {
  const { policy, onBlocked, credentials } = options;
  const session: CDPSession = await browser.newBrowserCDPSession();
  // A request whose page is gone by now needs no answer.
  const ignoreGone = () => {};
  session.on("Fetch.requestPaused", ({ requestId, request, resourceType }) => {
    const verdict = policy.judge(request.url);
    if (verdict.allowed) {
      session.send("Fetch.continueRequest", { requestId }).catch(ignoreGone);
      return;
    }
    const url = request.url.slice(0, SHOWN_URL_CHARACTERS);
    onBlocked({ url, reason: verdict.reason, isDocument: resourceType === "Document" });
    session.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" }).catch(ignoreGone);
  });
  session.on("Fetch.authRequired", ({ requestId, authChallenge }) => {
    const isProxy = authChallenge.source === "Proxy" && credentials !== undefined;
    const authChallengeResponse = isProxy
      ? { response: "ProvideCredentials" as const, ...credentials }
      : { response: "CancelAuth" as const };
    session.send("Fetch.continueWithAuth", { requestId, authChallengeResponse }).catch(ignoreGone);
  });
  await session.send("Fetch.enable", { patterns: [{ urlPattern: "*" }], handleAuthRequests: true });
}
