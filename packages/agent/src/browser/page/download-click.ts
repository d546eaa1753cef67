import type { CDPSession, Page } from "playwright-core";
import { BrowserError } from "../../errors.ts";
import type { Download } from "./download.ts";
import { readBrowserFile } from "./read-file.ts";

/**
 * The file that a click gives. Downloads are refused at all other times; this one goes to a directory of the
 * browser's own, from where it is read through the browser, since nobody else may see that directory.
 */
export async function downloadByClick(
  page: Page,
  click: () => Promise<void>,
  options: {
    /** The browser's. */
    readonly session: CDPSession;
    readonly directory: string;
    readonly maxBytes: number;
    readonly timeoutMs: number;
  },
): Promise<Download> {
  const { session, directory, maxBytes } = options;
  const browserContextId = await contextIdOf(page);
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly id: string; readonly url: string }>();
  promise.catch(() => {});
  let begun: { readonly id: string; readonly url: string } | undefined;
  const cancel = (guid: string): void => void session.send("Browser.cancelDownload", { guid }).catch(() => {});
  const onBegin = ({ guid, url }: { readonly guid: string; readonly url: string }): void => {
    // One click, one file.
    if (begun === undefined) begun = { id: guid, url };
    else cancel(guid);
  };
  const onProgress = (progress: Progress): void => {
    if (begun === undefined || progress.guid !== begun.id) return;
    if (progress.receivedBytes > maxBytes) {
      cancel(progress.guid);
      reject(new BrowserError("ACTION_FAILED", `it has more than ${maxBytes} bytes`));
    } else if (progress.state === "completed") resolve(begun);
    else if (progress.state === "canceled") reject(new BrowserError("ACTION_FAILED", "the download was broken off"));
  };
  const timer = setTimeout(
    () => reject(new BrowserError("ACTION_FAILED", `no file came within ${options.timeoutMs} ms`)),
    options.timeoutMs,
  );
  session.on("Browser.downloadWillBegin", onBegin);
  session.on("Browser.downloadProgress", onProgress);
  try {
    const allowed = { behavior: "allowAndName", downloadPath: directory, eventsEnabled: true } as const;
    await session.send("Browser.setDownloadBehavior", { ...allowed, browserContextId });
    await click();
    const { id, url } = await promise;
    return { content: await readBrowserFile(page, `${directory}/${id}`, maxBytes), url };
  } finally {
    clearTimeout(timer);
    session.off("Browser.downloadWillBegin", onBegin);
    session.off("Browser.downloadProgress", onProgress);
    await session.send("Browser.setDownloadBehavior", { behavior: "deny", browserContextId });
  }
}

interface Progress {
  readonly guid: string;
  readonly receivedBytes: number;
  readonly state: "inProgress" | "completed" | "canceled";
}

async function contextIdOf(page: Page): Promise<string> {
  const session = await page.context().newCDPSession(page);
  try {
    const { targetInfo } = await session.send("Target.getTargetInfo");
    if (targetInfo.browserContextId !== undefined) return targetInfo.browserContextId;
    throw new BrowserError("ACTION_FAILED", "the browser does not tell where its downloads go");
  } finally {
    await session.detach();
  }
}
