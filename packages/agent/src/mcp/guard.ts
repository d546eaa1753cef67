import { createHash, timingSafeEqual } from "node:crypto";
import { refusal } from "./refusal.ts";

export interface HttpAccess {
  /** Expected as `Authorization: Bearer KEY` or `X-Api-Key: KEY`; false leaves that to whoever calls the handler. */
  readonly apiKey: string | false;
  /** Names, without a port, by which this server is called; default: those of the loopback interface. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Pages that may call it: "https://example.com"; default: no page may. */
  readonly allowedOrigins?: readonly string[] | undefined;
}

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Refuses who may not come; undefined: he may. A page of a stranger can make its name point here, but neither the name in
 * `Host` nor its own `Origin` are ones that we expect then.
 */
export function refuseStranger({ headers }: Request, access: HttpAccess): Response | undefined {
  const { apiKey, allowedHosts = LOOPBACK, allowedOrigins = [] } = access;
  const host = hostName(headers.get("host"));
  if (host === undefined || !allowedHosts.includes(host)) return refusal(403, "this server is not called by this name");
  const origin = headers.get("origin");
  if (origin !== null && !allowedOrigins.includes(origin)) return refusal(403, "pages from there may not call this");
  if (apiKey === false || isSame(keyIn(headers), apiKey)) return undefined;
  return refusal(401, "the API key is missing or wrong", { "www-authenticate": "Bearer" });
}

/** "[::1]:80" → "[::1]" */
function hostName(host: string | null): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[^:@/\s]+)(?::\d+)?$/i.exec(host ?? "")?.[1]?.toLowerCase();
}

function keyIn(headers: Headers): string {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "") ?? [];
  return bearer ?? headers.get("x-api-key") ?? "";
}

/** Takes as long for a key that is nearly right. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((key) => createHash("sha256").update(key).digest());
  return expected !== "" && timingSafeEqual(a!, b!);
}
