import { isIP } from "node:net";
import { isLoopback, parseAddress } from "../http/address.ts";

/** "127.0.0.1:9000", "localhost:9000", "[::1]:9000", ":9000" for every interface, or "unix:/run/agentfense.sock". */
export function isAddress(text: string): boolean {
  try {
    parseAddress(text);
    return true;
  } catch {
    return false;
  }
}

/** Other machines can connect. A name other than localhost could become any address, so it counts as open. */
export function isOpenAddress(text: string): boolean {
  if (!isAddress(text)) return true;
  const address = parseAddress(text);
  if ("path" in address) return false;
  const { host } = address;
  if (host === undefined) return true;
  return isIP(host) === 0 ? host.toLowerCase() !== "localhost" : !isLoopback(host);
}
