/** A Chromium that runs, with the two ends of its debugging pipe. Disposing ends it with all it started. */
export interface ChromiumProcess extends AsyncDisposable {
  /** JSON texts. To be read once, to the end. */
  readonly messages: AsyncIterable<Buffer>;
  /** Takes messages, each with a NUL behind it. */
  write(data: Uint8Array): Promise<void>;
  /** A directory of its own, as it sees it. */
  readonly downloadDirectory: string;
}

/** Where Chromium is, unless somebody says so. The first is Debian's without the script around it. */
export const USUAL_PLACES: readonly string[] = [
  "/usr/lib/chromium/chromium",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** Of one message: a screenshot of a long page is the largest there is. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

export const INSTALL_HINT = "install Debian's chromium, or name another one with executablePath";
