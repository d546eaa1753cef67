import type { IncomingHttpHeaders } from "node:http";

export const CONFIRMATIONS_PATH = "/v1/confirmations";
export const SUBPROTOCOL = "agentfense.confirmations.v1";
/** Before the key in base64url, as a second subprotocol: browsers cannot set headers of a WebSocket. */
const KEY_SUBPROTOCOL_PREFIX = "agentfense.key.";

export function confirmationKeyIn(headers: IncomingHttpHeaders): string | undefined {
  const encoded = offeredProtocols(headers)
    .find((name) => name.startsWith(KEY_SUBPROTOCOL_PREFIX))
    ?.slice(KEY_SUBPROTOCOL_PREFIX.length);
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64url").toString("utf8");
}

export function offeredProtocols(headers: IncomingHttpHeaders): string[] {
  return headers["sec-websocket-protocol"]?.split(",").map((name) => name.trim()) ?? [];
}
