import type { IncomingHttpHeaders } from "node:http";
import type { AccessTokens } from "./tokens.ts";

/** E2B_API_URL and E2B_SANDBOX_URL end with this. */
export const E2B_PREFIX = "/e2b/";
/** Clients make signed URLs without the prefix. */
export const SIGNED_PATH = "/files";

/** A key in the form that older clients of E2B ask for: `e2b_` and hexadecimal digits, which say the same. */
const E2B_KEY = /^e2b_([0-9a-f]{32})([0-9a-f]{64})$/;

/** "af_key_ID_SECRET" as an E2B client takes it; the key itself where it has another form. */
export function e2bFormOf(key: string): string {
  const [, id, secret] = /^af_key_([0-9a-f]{32})_([A-Za-z0-9_-]{43})$/.exec(key) ?? [];
  return secret === undefined ? key : `e2b_${id}${Buffer.from(secret, "base64url").toString("hex")}`;
}

/** The key that is meant by what a client sends. */
export function keyOf(given: string): string {
  const [, id, secret] = E2B_KEY.exec(given) ?? [];
  return secret === undefined ? given : `af_key_${id}_${Buffer.from(secret, "hex").toString("base64url")}`;
}

/** Where clients of E2B have their key: in a form of their own, or in the token of a sandbox, which their URLs are signed with too. */
export function e2bKeyIn(tokens: AccessTokens, headers: IncomingHttpHeaders, target: string): string | undefined {
  const { "x-api-key": key } = headers;
  if (typeof key === "string") return keyOf(key.trim()) || undefined;
  const { "x-access-token": token } = headers;
  if (typeof token === "string") return tokens.read(token)?.key || undefined;
  const at = target.indexOf("?");
  if (at === -1 || !/^\/(e2b\/)?files$/.test(target.slice(0, at).replaceAll(/\/+/g, "/"))) return undefined;
  const query = new URLSearchParams(target.slice(at));
  return (tokens.signerOf(query, "read") ?? tokens.signerOf(query, "write"))?.key || undefined;
}
