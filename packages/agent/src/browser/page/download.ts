import type { CDPSession, Page } from "playwright-core";
import { BrowserError } from "../../errors.ts";

/** What was fetched, and from where in the end. */
export interface Download {
  readonly content: Buffer;
  readonly url: string;
}

const ANSWER_CHUNK_BYTES = 1024 * 1024;

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
    const { data, base64Encoded, eof } = await session.send("IO.read", { handle, size: ANSWER_CHUNK_BYTES });
    const piece = Buffer.from(data, base64Encoded === true ? "base64" : "utf8");
    size += piece.length;
    if (size > maxBytes) throw new BrowserError("ACTION_FAILED", `it has more than ${maxBytes} bytes`);
    pieces.push(piece);
    if (eof) return Buffer.concat(pieces);
  }
}

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

const CHUNK_BYTES = 1024 * 1024;

// Both run in an empty page: `this` is an <input type="file">.
const SIZE = "function() { return this.files[0].size; }";
const CHUNK = `function(from, to) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(this.files[0].slice(from, to));
  });
}`;

/** A file as the browser sees it, read in an empty page that knows no other. */
async function readBrowserFile(neighbour: Page, path: string, maxBytes: number): Promise<Buffer> {
  const context = await neighbour.context().browser()?.newContext({ acceptDownloads: false });
  if (context === undefined) throw new BrowserError("ACTION_FAILED", "the browser is gone");
  try {
    const session = await context.newCDPSession(await context.newPage());
    const expression = 'Object.assign(document.createElement("input"), { type: "file" })';
    const { objectId } = (await session.send("Runtime.evaluate", { expression })).result;
    if (objectId === undefined) throw new BrowserError("ACTION_FAILED", "the browser cannot read the file");
    await session.send("DOM.setFileInputFiles", { files: [path], objectId });
    const call = async (functionDeclaration: string, ...values: readonly number[]): Promise<unknown> => {
      const args = values.map((value) => ({ value }));
      const how = { objectId, awaitPromise: true, returnByValue: true, arguments: args };
      return (await session.send("Runtime.callFunctionOn", { functionDeclaration, ...how })).result.value;
    };
    const size = Number(await call(SIZE));
    if (!(size <= maxBytes)) throw new BrowserError("ACTION_FAILED", `it has more than ${maxBytes} bytes`);
    const content = Buffer.alloc(size);
    for (let at = 0; at < size; at += CHUNK_BYTES)
      content.write(String(await call(CHUNK, at, Math.min(size, at + CHUNK_BYTES))), at, "base64");
    return content;
  } finally {
    await context.close();
  }
}
