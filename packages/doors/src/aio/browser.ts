import * as shape from "../shape.ts";
import { Refusal } from "./envelope.ts";
import type { AioBrowser } from "./options.ts";
import { type AioCall, bare, get, post, type Route } from "./route.ts";

const screenshotInput = shape.object({
  format: shape.oneOf(["png", "jpg", "jpeg"]).default("png"),
  quality: shape.digits().min(1).max(100).optional(),
});

export const BROWSER_ROUTES: readonly Route[] = [
  bare("GET", "v1/browser/info", async (call) => {
    const { signal } = call.request;
    const { userAgent, cdpUrl, viewport } = await browserOf(call).info(call.sandbox, { signal });
    return { user_agent: userAgent, cdp_url: cdpUrl, vnc_url: "", cdp_ui_url: null, viewport, page_viewport: viewport };
  }),
  get("v1/browser/screenshot", screenshotInput, screenshot),
  get("v1/browser/page/screenshot", screenshotInput, screenshot),
  post(
    "v1/browser/page/navigate",
    shape.object({
      url: shape.string().min(1).max(8192),
      wait_until: shape.oneOf(["load", "domcontentloaded", "networkidle", "commit"]).default("load"),
      timeout: shape.number().above(0).max(300).default(30),
    }),
    async (call, { url, wait_until, timeout }) =>
      await browserOf(call).navigate(call.sandbox, {
        url,
        waitUntil: wait_until,
        timeoutMs: timeout * 1000,
        signal: call.request.signal,
      }),
  ),
];

async function screenshot(call: AioCall, { format, quality }: shape.Value<typeof screenshotInput>): Promise<Response> {
  const kind = format === "png" ? "png" : "jpeg";
  const options = { format: kind, quality, signal: call.request.signal } as const;
  const image = await browserOf(call).screenshot(call.sandbox, options);
  return new Response(image as Uint8Array<ArrayBuffer>, { headers: { "content-type": `image/${kind}` } });
}

function browserOf({ options: { browser } }: AioCall): AioBrowser {
  if (browser !== undefined) return browser;
  throw noBrowser();
}

/** For all that is about browsers and not above. */
export function noBrowser(): Refusal {
  return new Refusal("there is no such browser call here", {
    status: 501,
    hint: "info, screenshot and page/navigate are there when the server was given a browser",
  });
}
