import { BlockList, isIP } from "node:net";

// Which addresses belong to everybody. Whatever a router, a cloud or this machine keeps to itself is not among them.

/**
 * IPv4 that is not public: this machine, local networks, link-local (metadata services), tests, multicast, reserved.
 */
const NOT_PUBLIC_V4 = ranges("ipv4", [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
]);

/** Of IPv6 only 2000::/3 is public at all. */
const GLOBAL_V6 = ranges("ipv6", [["2000::", 3]]);

/** In there, but special: Teredo and its like, documentation, 6to4 with any IPv4 address in it. */
const NOT_PUBLIC_V6 = ranges("ipv6", [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
]);

/** Whether an address, in any spelling that `net.isIP` knows, is one of the public internet. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !NOT_PUBLIC_V4.check(address, "ipv4");
    case 6:
      return GLOBAL_V6.check(address, "ipv6") && !NOT_PUBLIC_V6.check(address, "ipv6");
    default:
      return false;
  }
}

/** The names that mean this machine or its network wherever they are asked for. */
const LOCAL_NAMES = ["localhost", "local", "internal", "intranet", "lan", "home.arpa"];

/** Whether a host, as the URL parser writes it, is known not to be public without asking anybody. */
export function isKnownPrivate(hostname: string): boolean {
  const address = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  if (isIP(address) !== 0) return !isPublicAddress(address);
  return LOCAL_NAMES.some((name) => hostname === name || hostname.endsWith(`.${name}`));
}

function ranges(family: "ipv4" | "ipv6", networks: readonly (readonly [network: string, prefix: number])[]): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of networks) list.addSubnet(network, prefix, family);
  return list;
}
