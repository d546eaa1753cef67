import type { IncomingHttpHeaders } from "node:http";
import { isSandboxId } from "../../runtime/ids.ts";

/** The port of a sandbox that a request is for. */
export interface PortTarget {
  readonly sandboxId: string;
  readonly port: number;
  /**
   * | `path` | /v1/sandboxes/ID/ports/3000/…, on the host name of the API: for programs |
   * | `host` | 3000-ID.localhost: an origin of its own, for browsers |
   */
  readonly form: "path" | "host";
  /** What is asked for there, with the query, without a token: "/a?b=c". */
  readonly path: string;
  /** The token in the query. */
  readonly token: string | undefined;
}

export const TOKEN_PARAMETER = "agentfense_token";
export const TOKEN_HEADER = "x-agentfense-token";
const TOKEN_COOKIE = "agentfense_port";

const HOST = /^([1-9]\d{0,4})-(sb_[0-9a-f]+)\.localhost(?::\d{1,5})?$/i;
const PATH = /^\/v1\/sandboxes\/([^/?#]+)\/ports\/([1-9]\d{0,4})(?=[/?]|$)(.*)$/s;

/** Undefined: it is for the API. A host name that looks like a port's is never the API's, whatever the path. */
export function portTargetOf(host: string | undefined, url: string): PortTarget | undefined {
  const name = HOST.exec(host ?? "");
  const [, id = "", port = "", rest = ""] = name === null ? (PATH.exec(url) ?? []) : ["", name[2], name[1], url];
  if (id === "" || Number(port) > 65_535 || !isSandboxId(id.toLowerCase())) return undefined;
  const { path, token } = withoutToken(rest.startsWith("/") || name !== null ? rest : `/${rest}`);
  return { sandboxId: id.toLowerCase(), port: Number(port), form: name === null ? "path" : "host", path, token };
}

/** Whether a host name is of the kind that ports have. */
export function isPortHost(host: string | undefined): boolean {
  return /^\d+-sb_[^.]*\.localhost\.?(?::\d*)?$/i.test(host ?? "");
}

export function tokenCookieOf(headers: IncomingHttpHeaders): string | undefined {
  return cookiesOf(headers)
    .find((cookie) => cookie.startsWith(`${TOKEN_COOKIE}=`))
    ?.slice(TOKEN_COOKIE.length + 1);
}

/** For this very host name alone, out of reach of its scripts, and sent with nothing that another site asks for. */
export function tokenCookie(token: string, { expiresAtMs, secure }: { expiresAtMs: number; secure: boolean }): string {
  const attributes = `Path=/; HttpOnly; SameSite=Strict; Expires=${new Date(expiresAtMs).toUTCString()}`;
  return `${TOKEN_COOKIE}=${token}; ${attributes}${secure ? "; Secure" : ""}`;
}

/** All but ours. */
export function foreignCookies(headers: IncomingHttpHeaders): string {
  return cookiesOf(headers)
    .filter((cookie) => !cookie.startsWith(`${TOKEN_COOKIE}=`))
    .join("; ");
}

/** Cookies that a page may set: none for other host names, and not ours. */
export function isOwnCookie(cookie: string): boolean {
  return !/;\s*domain\s*=/i.test(cookie) && !cookie.trimStart().startsWith(`${TOKEN_COOKIE}=`);
}

function cookiesOf({ cookie = "" }: IncomingHttpHeaders): string[] {
  return cookie.split(/;\s*/).filter((each) => each !== "");
}

function withoutToken(url: string): Pick<PortTarget, "path" | "token"> {
  const [path = "", ...rest] = url.split("?");
  const pairs = rest.length === 0 ? [] : rest.join("?").split("&");
  const isToken = (pair: string): boolean => pair.startsWith(`${TOKEN_PARAMETER}=`);
  const token = pairs.find(isToken)?.slice(TOKEN_PARAMETER.length + 1);
  const kept = pairs.filter((pair) => !isToken(pair));
  return { path: kept.length === 0 ? path : `${path}?${kept.join("&")}`, token };
}
