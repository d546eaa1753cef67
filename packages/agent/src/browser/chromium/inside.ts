import type { Sandbox } from "@agentfense/sdk";
import { BrowserError } from "../../errors.ts";
import type { UrlRules } from "../url/policy.ts";
import { proxyScriptUrl } from "../url/proxy-script.ts";
import { type ChromiumProcess, COMMON_FLAGS, INSTALL_HINT, MAX_MESSAGE_BYTES, USUAL_PLACES } from "./process.ts";
import { messagesOf } from "./transport.ts";

/**
 * Makes the terminal a pipe, says so, and starts the browser with it as its debugging pipe. What the browser
 * complained about before it ended is the last thing to be told.
 */
const START = `
stty raw -echo && printf 'ready\\0' || exit
exec 3<&0 4>&1 </dev/null >/dev/null
"$@" 2>/tmp/chromium.log
{ tail -c 400 /tmp/chromium.log; printf '\\0'; } >&4
`;
const FIND = 'for program; do [ -x "$program" ] && printf %s "$program" && exit; done; exit 1';
const DOWNLOADS = "/tmp/downloads";
/** Debian's is a script that wants settings from /etc, which no sandbox has; the program itself is elsewhere. */
const UNWRAPPED: Readonly<Record<string, readonly string[]>> = { "/usr/bin/chromium": ["/usr/lib/chromium/chromium"] };

/**
 * A Chromium in a sandbox: of files it sees what the rules show, of networks what the sandbox has. Its pipe is a
 * terminal, since a terminal has no time limit. It runs without Chromium's own sandbox, which cannot be built in this
 * one.
 */
export async function startInside(
  sandbox: Sandbox,
  options: {
    readonly executablePath?: string | undefined;
    readonly urls: UrlRules;
    readonly signal: AbortSignal;
  },
): Promise<ChromiumProcess> {
  const { executablePath, urls, signal } = options;
  const places = executablePath === undefined ? USUAL_PLACES : [...(UNWRAPPED[executablePath] ?? []), executablePath];
  const found = await sandbox.run(["/bin/sh", "-c", FIND, "sh", ...places], { signal });
  if (!found.success) {
    const hint = `${INSTALL_HINT}; a sandbox shows the programs of its machine or of its image`;
    throw new BrowserError("UNAVAILABLE", `there is no Chromium in the sandbox: ${places.join(", ")}`, { hint });
  }
  const terminal = await sandbox.terminal({
    argv: ["/bin/sh", "-c", START, "sh", found.stdout, ...insideFlags(urls)],
    signal,
  });
  const messages = messagesOf(terminal.output, MAX_MESSAGE_BYTES);
  const kill = () => terminal.kill();
  signal.addEventListener("abort", kill, { once: true });
  const first = await messages.next();
  signal.removeEventListener("abort", kill);
  if (first.done === true || first.value.toString() !== "ready") {
    await terminal.kill();
    signal.throwIfAborted();
    throw new BrowserError("UNAVAILABLE", `the browser's terminal said: ${first.value?.toString("utf8", 0, 400)}`);
  }
  return {
    messages,
    write: (data) => terminal.write(data),
    downloadDirectory: DOWNLOADS,
    async [Symbol.asyncDispose]() {
      await terminal.kill();
    },
  };
}

function insideFlags(urls: UrlRules): string[] {
  const script = proxyScriptUrl(urls);
  return [
    ...COMMON_FLAGS,
    "--no-sandbox",
    "--user-data-dir=/tmp/chromium",
    ...(script === undefined ? ["--no-proxy-server"] : [`--proxy-pac-url=${script}`]),
  ];
}
