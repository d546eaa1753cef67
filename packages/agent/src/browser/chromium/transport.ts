import type { ConnectOverCDPTransport } from "playwright-core";
import type { ChromiumProcess } from "./process.ts";

const NUL = Buffer.of(0);
/** As Chromium makes them. They become names of files. */
const DOWNLOAD_ID = /^[0-9A-Fa-f-]{1,64}$/;

/** Playwright's way to a browser whose pipe somebody else holds. What is not a message ends the connection. */
export class PipeTransport implements ConnectOverCDPTransport {
  // Set by whoever connects.
  onmessage?: (message: object) => void;
  onclose?: (reason?: string) => void;
  readonly #chromium: ChromiumProcess;
  #sending: Promise<void> = Promise.resolve();
  #closedBecause: string | undefined;

  constructor(chromium: ChromiumProcess) {
    this.#chromium = chromium;
    this.#read().then(
      () => this.#close("the browser has ended"),
      (error: unknown) => this.#close(String(error)),
    );
  }

  /** Why there is no connection any more. */
  get closedBecause(): string | undefined {
    return this.#closedBecause;
  }

  send(message: object): void {
    const data = Buffer.concat([Buffer.from(JSON.stringify(message)), NUL]);
    this.#sending = this.#sending
      .then(() => (this.#closedBecause === undefined ? this.#chromium.write(data) : this.#tellClosed()))
      // What can no longer be written to is about to say why.
      .catch(() => {});
  }

  close(): void {
    this.#close("it was closed");
  }

  async #read(): Promise<void> {
    for await (const text of this.#chromium.messages) {
      // What nobody reads would hold up the end of the process.
      if (this.#closedBecause !== undefined) continue;
      // What playwright makes of a message that no browser would send comes as a rejection.
      await this.onmessage?.(checkedMessage(text));
    }
  }

  #close(reason: string): void {
    if (this.#closedBecause !== undefined) return;
    this.#closedBecause = reason;
    this.#tellClosed();
  }

  #tellClosed(): void {
    this.onclose?.(this.#closedBecause);
  }
}

function checkedMessage(text: Buffer): object {
  const message = parsed(text);
  const { method, params } = message as { readonly method?: unknown; readonly params?: { readonly guid?: unknown } };
  // Playwright removes files by this name: one that leads elsewhere is from a browser that was taken over.
  const isDownload = typeof method === "string" && method.includes("download");
  if (isDownload && !(typeof params?.guid === "string" && DOWNLOAD_ID.test(params.guid)))
    throw new TypeError("the browser told of a download without a proper id");
  return message;
}

function parsed(text: Buffer): object {
  try {
    const value: unknown = JSON.parse(text.toString());
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Told below, with what it was.
  }
  throw new TypeError(`the browser said: ${text.toString("utf8", 0, 400)}`);
}

/**
 * The messages of a debugging pipe: texts with a NUL behind each. What comes is a browser's, and pages are in it: a
 * message without an end is given up before it fills the memory.
 */
export async function* messagesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxMessageBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  let pieces: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(0); end !== -1; end = chunk.indexOf(0, from)) {
      yield Buffer.concat([...pieces, chunk.subarray(from, end)]);
      pieces = [];
      size = 0;
      from = end + 1;
    }
    if (from === chunk.length) continue;
    pieces.push(chunk.slice(from));
    size += chunk.length - from;
    if (size > maxMessageBytes) throw new RangeError(`a message of more than ${maxMessageBytes} bytes`);
  }
}
