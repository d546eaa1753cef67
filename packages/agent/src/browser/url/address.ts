import { BlockList, isIP } from "node:net";
import { type IpFamily, NOT_PUBLIC_RANGES } from "@agentfense/permission";

const NOT_PUBLIC = { ipv4: blockList("ipv4"), ipv6: blockList("ipv6") };

/** Whether an address, in any spelling that `net.isIP` knows, is one of the public internet. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !NOT_PUBLIC.ipv4.check(address, "ipv4");
    case 6:
      return !NOT_PUBLIC.ipv6.check(address, "ipv6");
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

function blockList(family: IpFamily): BlockList {
  const list = new BlockList();
  for (const range of NOT_PUBLIC_RANGES[family]) {
    const [network = "", bits] = range.split("/");
    list.addSubnet(network, Number(bits), family);
  }
  return list;
}
