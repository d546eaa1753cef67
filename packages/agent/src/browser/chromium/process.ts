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

/** The longest message: a screenshot of a long page is the largest there is. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

export const INSTALL_HINT = "install Debian's chromium, or name another one with executablePath";

/**
 * Chromium's part of the arrangement: the debugging pipe, nothing that is kept, and nothing that it would ask the
 * network for by itself.
 */
export const COMMON_FLAGS: readonly string[] = [
  "--headless",
  "--remote-debugging-pipe",
  "--no-first-run",
  "--no-default-browser-check",
  "--no-startup-window",
  "--deny-permission-prompts",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-extensions",
  "--disable-component-extensions-with-background-pages",
  "--disable-default-apps",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-client-side-phishing-detection",
  "--disable-domain-reliability",
  "--disable-breakpad",
  "--disable-crash-reporter",
  "--disable-field-trial-config",
  "--disable-search-engine-choice-screen",
  "--disable-sync",
  "--metrics-recording-only",
  "--no-pings",
  // The agent is the only one at the keyboard: tabs that nobody looks at still work.
  "--disable-background-timer-throttling",
  "--disable-backgrounding-occluded-windows",
  "--disable-renderer-backgrounding",
  "--disable-hang-monitor",
  "--disable-prompt-on-repost",
  // A page that comes back from this cache was never asked for again.
  "--disable-back-forward-cache",
  "--password-store=basic",
  "--use-mock-keychain",
  "--mute-audio",
  "--force-color-profile=srgb",
  // Connections that nobody could look at: UDP of WebRTC, HTTP/3.
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--disable-quic",
  "--enable-features=CDPScreenshotNewSurface",
  `--disable-features=${[
    "AutofillServerCommunication",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "GlobalMediaControls",
    "HttpsUpgrades",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "Translate",
    "WebRtcHideLocalIpsWithMdns",
    // With these, requests that were looked at fail after redirects.
    "AvoidCorsURLLoaderRestartOnRedirect",
    "BlockOriginHeaderModificationOnRedirect",
  ].join(",")}`,
];
