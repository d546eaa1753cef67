import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv6 } from "node:net";
import { RuntimeError } from "../../runtime/runtime-error.ts";

/** Where to listen. */
export type ListenAddress = PortAddress | SocketAddress;

/** An undefined host means every interface. */
interface PortAddress {
  readonly host: string | undefined;
  readonly port: number;
}

/** A Unix socket. */
interface SocketAddress {
  readonly path: string;
}

/** What fits into sockaddr_un with its final NUL (unix(7)). */
const LONGEST_SOCKET_PATH = 107;

/**
 * | text             | listens at                                |
 * | ":9000"          | every interface                           |
 * | "127.0.0.1:9000" | that address                              |
 * | "[::1]:9000"     | that address                              |
 * | "localhost:9000" | that name                                 |
 * | "unix:/run/s"    | that socket; "unix:///run/s" is the same  |
 */
export function parseAddress(text: string): ListenAddress {
  return text.startsWith("unix:") ? parseSocketAddress(text) : parsePortAddress(text);
}

function parseSocketAddress(text: string): SocketAddress {
  const [, path] = /^unix:(?:\/\/(?=\/))?(\/[^/\0][^\0]*)$/.exec(text) ?? [];
  if (path === undefined || path.endsWith("/")) {
    throw notAnAddress(text, "a socket is unix: and an absolute path, as in unix:/run/agentfense.sock");
  }
  if (!fitsSocket(path)) throw notAnAddress(text, `the path of a socket has at most ${LONGEST_SOCKET_PATH} bytes`);
  return { path };
}

/** Whether a socket can have this path. */
export function fitsSocket(path: string): boolean {
  return Buffer.byteLength(path) <= LONGEST_SOCKET_PATH;
}

function parsePortAddress(text: string): PortAddress {
  const match = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<name>[A-Za-z0-9._-]*)):(?<port>\d{1,5})$/.exec(text);
  const port = Number(match?.groups?.port);
  const host = match?.groups?.v6 ?? match?.groups?.name ?? "";
  const wellFormed = match !== null && port <= 65_535 && (match.groups?.v6 === undefined || isIPv6(host));
  if (!wellFormed) throw notAnAddress(text, "write host:port, as in 127.0.0.1:9000 or [::1]:9000");
  return { host: host === "" ? undefined : host, port };
}

function notAnAddress(text: string, hint: string): RuntimeError {
  return new RuntimeError("INVALID_ARGUMENT", `not an address to listen at: ${JSON.stringify(text)}`, { hint });
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Whether an IP address is this machine's own, the IPv6 form of an IPv4 address included. */
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

/** "127.0.0.1:9000", "[::1]:9000", "unix:/run/s" */
export function formatAddress(address: ListenAddress): string {
  if ("path" in address) return `unix:${address.path}`;
  const { host = "", port } = address;
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** Programs of other machines cannot connect; a name counts as the address it was resolved to. */
export function isWithinMachine(address: ListenAddress): boolean {
  return "path" in address || (address.host !== undefined && isLoopback(address.host));
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
  if ("path" in address) return address;
  const host = address.host === undefined ? undefined : await resolveHost(address.host, text);
  const binding = { host, port: address.port };
  if (rules.keys === "off" && !rules.allowOpen && !isWithinMachine(binding)) {
    throw new RuntimeError(
      "INVALID_ARGUMENT",
      `refusing to listen at ${text} without API keys: anybody could run commands`,
      {
        details: { address: text },
        hint: `listen at 127.0.0.1:${address.port}, require API keys, or allow an open server explicitly`,
      },
    );
  }
  return binding;
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
