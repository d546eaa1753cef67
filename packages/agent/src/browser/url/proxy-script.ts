import { type ConnectionPattern, UrlPattern } from "./pattern.ts";
import type { UrlRules } from "./policy.ts";

/** Nothing listens there, in a sandbox. */
const NOWHERE = "PROXY 127.0.0.1:1";

/**
 * The same lists as a proxy script for Chromium, by scheme, host and port: it also asks it where nobody can look at the
 * request, as with WebSockets. The address of a data: URL, or undefined where there is nothing to say.
 */
export function proxyScriptUrl({ allow, deny = [] }: UrlRules): string | undefined {
  if (allow === undefined && deny.length === 0) return undefined;
  const denied = deny.map((text) => new UrlPattern(text)).filter((pattern) => pattern.coversWholeHosts);
  const allowed = allow?.map((text) => new UrlPattern(text).connection) ?? null;
  const script = proxyScript(
    denied.map((pattern) => pattern.connection),
    allowed,
  );
  return `data:application/x-ns-proxy-autoconfig;base64,${Buffer.from(script).toString("base64")}`;
}

function proxyScript(denied: readonly ConnectionPattern[], allowed: readonly ConnectionPattern[] | null): string {
  return `
const denied = ${JSON.stringify(denied)};
const allowed = ${JSON.stringify(allowed)};
const ports = { http: "80", https: "443" };
function FindProxyForURL(url) {
  const parts = /^(http|https|ws|wss):\\/\\/(\\[[^\\]]*\\]|[^\\/:]*)(?::(\\d+))?(?:\\/|$)/.exec(url);
  if (parts === null) return "${NOWHERE}";
  const scheme = parts[1].replace("ws", "http");
  const host = parts[2].toLowerCase().replace(/\\.$/, "");
  const port = parts[3] || ports[scheme];
  const matches = (p) =>
    (p.scheme === "*" || p.scheme === scheme) &&
    (p.port === undefined || p.port === port) &&
    (p.host.kind === "any" || host === p.host.name || (p.host.kind === "below" && host.endsWith("." + p.host.name)));
  if (denied.some(matches) || (allowed !== null && !allowed.some(matches))) return "${NOWHERE}";
  return "DIRECT";
}`;
}
