import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv6 } from "node:net";
import { RuntimeError } from "../../runtime/errors.ts";

/** Where to listen. An undefined host means every interface. */
export interface ListenAddress {
  readonly host: string | undefined;
  readonly port: number;
}

/**
 * | text             | host            |
 * | ":9000"          | every interface |
 * | "127.0.0.1:9000" | that address    |
 * | "[::1]:9000"     | that address    |
 * | "localhost:9000" | that name       |
 */
export function parseAddress(text: string): ListenAddress {
  const match = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<name>[A-Za-z0-9._-]*)):(?<port>\d{1,5})$/.exec(text);
  const port = Number(match?.groups?.port);
  const host = match?.groups?.v6 ?? match?.groups?.name ?? "";
  const wellFormed = match !== null && port <= 65_535 && (match.groups?.v6 === undefined || isIPv6(host));
  if (!wellFormed) {
    throw new RuntimeError("INVALID_ARGUMENT", `not an address to listen at: ${JSON.stringify(text)}`, {
      hint: "write host:port, as in 127.0.0.1:9000 or [::1]:9000",
    });
  }
  return { host: host === "" ? undefined : host, port };
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Of an IP address, the IPv6 form of an IPv4 address included. */
export function isLoopback(ip: string): boolean {
  const plain = plainAddress(ip);
  const family = isIP(plain);
  return family !== 0 && LOOPBACK.check(plain, family === 6 ? "ipv6" : "ipv4");
}

/** "::ffff:127.0.0.1", as sockets of both families name an IPv4 peer, is 127.0.0.1. */
export function plainAddress(ip: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip);
  return mapped?.[1] ?? ip;
}

/** "127.0.0.1:9000", "[::1]:9000" */
export function formatAddress(ip: string, port: number): string {
  return `${isIPv6(ip) ? `[${ip}]` : ip}:${port}`;
}

/** How a service may be reached without keys. */
export interface BindingRules {
  readonly keys: "required" | "off";
  /** The operator said that anybody who reaches the port may use it. */
  readonly allowOpen: boolean;
}

/**
 * The address to bind, names resolved. What others can reach is refused unless callers have to show keys or the operator
 * insists.
 */
export async function resolveBinding(text: string, rules: BindingRules): Promise<ListenAddress> {
  const address = parseAddress(text);
  const host = address.host === undefined ? undefined : await resolveHost(address.host, text);
  if (rules.keys === "off" && !rules.allowOpen && (host === undefined || !isLoopback(host))) {
    throw new RuntimeError(
      "INVALID_ARGUMENT",
      `refusing to listen at ${text} without API keys: anybody could run commands`,
      {
        details: { address: text },
        hint: `listen at 127.0.0.1:${address.port}, require API keys, or allow an open server explicitly`,
      },
    );
  }
  return { host, port: address.port };
}

async function resolveHost(host: string, text: string): Promise<string> {
  if (isIP(host) !== 0) return host;
  try {
    return (await lookup(host, { order: "ipv4first" })).address;
  } catch (error) {
    throw new RuntimeError("INVALID_ARGUMENT", `cannot listen at ${text}: the name ${host} has no address`, {
      cause: error,
    });
  }
}
