import type { Page } from "playwright-core";
import { BrowserError } from "../../errors.ts";

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
export async function readBrowserFile(neighbour: Page, path: string, maxBytes: number): Promise<Buffer> {
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
