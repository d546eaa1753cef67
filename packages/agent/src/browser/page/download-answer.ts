import type { CDPSession, Page } from "playwright-core";
import { BrowserError } from "../../errors.ts";
import type { Download } from "./download.ts";

const CHUNK_BYTES = 1024 * 1024;

/**
 * What an address gives, whatever a browser would do with it: the answer is taken as it arrives, before there is a
 * page. Cookies are those of the tabs. Nothing is written anywhere.
 */
export async function downloadAnswer(
  page: Page,
  url: string,
  options: { readonly maxBytes: number; readonly timeoutMs: number },
): Promise<Download> {
  const session = await page.context().newCDPSession(page);
  const taken = Promise.withResolvers<Download>();
  // Whoever waits sees it; until then nobody does.
  taken.promise.catch(() => {});
  session.on("Fetch.requestPaused", ({ requestId, responseStatusCode: status, request }) => {
    // What failed is told by the navigation; redirects go on.
    if (status === undefined || (status >= 300 && status < 400)) {
      session.send("Fetch.continueRequest", { requestId }).catch(() => {});
      return;
    }
    takeAnswer(session, requestId, status, options.maxBytes)
      .then((content) => taken.resolve({ content, url: request.url }), taken.reject)
      .finally(() => session.send("Fetch.failRequest", { requestId, errorReason: "Aborted" }).catch(() => {}));
  });
  const patterns = [{ urlPattern: "*", resourceType: "Document", requestStage: "Response" }] as const;
  await session.send("Fetch.enable", { patterns: [...patterns] });
  const navigation = page.goto(url, { timeout: options.timeoutMs, waitUntil: "commit" }).then(
    () => Promise.reject(new BrowserError("ACTION_FAILED", "there was nothing to download")),
    // Taking the answer away ends the navigation.
    (error: unknown) => (String(error).includes("ERR_ABORTED") ? taken.promise : Promise.reject(error)),
  );
  return await Promise.race([taken.promise, navigation]);
}

async function takeAnswer(session: CDPSession, requestId: string, status: number, maxBytes: number): Promise<Buffer> {
  if (status >= 400) throw new BrowserError("ACTION_FAILED", `the answer was ${status}`);
  const { stream: handle } = await session.send("Fetch.takeResponseBodyAsStream", { requestId });
  const pieces: Buffer[] = [];
  let size = 0;
  for (;;) {
    const { data, base64Encoded, eof } = await session.send("IO.read", { handle, size: CHUNK_BYTES });
    const piece = Buffer.from(data, base64Encoded === true ? "base64" : "utf8");
    size += piece.length;
    if (size > maxBytes) throw new BrowserError("ACTION_FAILED", `it has more than ${maxBytes} bytes`);
    pieces.push(piece);
    if (eof) return Buffer.concat(pieces);
  }
}
