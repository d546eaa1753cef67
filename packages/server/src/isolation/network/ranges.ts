import { isIP } from "node:net";
import { type IpFamily, NOT_PUBLIC_RANGES } from "@agentfense/permission";
import { invalid } from "../backend/isolation-error.ts";

/** What people have their own hosts in, and may list. All else that is not public is nobody's to list. */
const PRIVATE: Readonly<Record<IpFamily, readonly string[]>> = {
  ipv4: ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16"],
  ipv6: ["fc00::/7"],
};
/** Clouds' metadata in there: who reads it may become the machine. */
const METADATA = ["100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::254/128"].map(rangeOf);

/** A network, as its first and last address. */
interface AddressRange {
  readonly family: IpFamily;
  readonly first: bigint;
  readonly last: bigint;
}

/** "10.1.0.0/16" or one address, in the form in which it is kept; refused when it has what may not be listed. */
export function parseRange(host: string, value: unknown): string {
  const text = typeof value === "string" ? value : "";
  const shown = `${JSON.stringify(value)?.slice(0, 100)} of ${host.slice(0, 300)}`;
  const [address = "", bits, ...more] = text.split("/");
  const size = isIP(address) === 4 ? 32 : 128;
  if (isIP(address) === 0 || address.includes("%") || more.length > 0 || !isPrefix(bits ?? `${size}`, size)) {
    throw invalid(`the address ${shown} is none`, 'write "10.1.0.0/16", or one address');
  }
  const normal = `${address.toLowerCase()}/${bits ?? size}`;
  const range = rangeOf(normal);
  if (numberOf(address) !== range.first) throw invalid(`the network ${shown} begins at another address`);
  const isPrivate = PRIVATE[range.family].map(rangeOf).some((one) => isWithin(range, one));
  if (!isPrivate && !isPublic(range)) {
    throw invalid(
      `${shown} is neither public nor one of a private network`,
      "this machine, its neighbours without a router, metadata and multicast are never reached",
    );
  }
  return normal;
}

/** Whether all of it is public. */
export function isPublicRange(range: string): boolean {
  return isPublic(rangeOf(range));
}

/** Whether a line may reach all that another's range has. */
export function isRangeWithin(range: string, ranges: readonly string[]): boolean {
  return ranges.some((one) => isWithin(rangeOf(range), rangeOf(one)));
}

/** Whether an address is in one of the ranges that a line lists. What is never reached is in none. */
export function isListed(address: string, ranges: readonly string[]): boolean {
  if (isIP(address) === 0 || address.includes("%")) return false;
  const one = rangeOf(`${address}/${isIP(address) === 4 ? 32 : 128}`);
  return !METADATA.some((range) => isWithin(one, range)) && ranges.some((range) => isWithin(one, rangeOf(range)));
}

function isPublic(range: AddressRange): boolean {
  return NOT_PUBLIC_RANGES[range.family]
    .map(rangeOf)
    .every(({ first, last }) => range.last < first || last < range.first);
}

function isWithin(range: AddressRange, other: AddressRange): boolean {
  return range.family === other.family && range.first >= other.first && range.last <= other.last;
}

function isPrefix(text: string, size: number): boolean {
  return /^(?:0|[1-9]\d{0,2})$/.test(text) && Number(text) <= size;
}

function rangeOf(text: string): AddressRange {
  const [address = "", bits] = text.split("/");
  const family = isIP(address) === 4 ? "ipv4" : "ipv6";
  const free = BigInt((family === "ipv4" ? 32 : 128) - Number(bits));
  const first = (numberOf(address) >> free) << free;
  return { family, first, last: first + (1n << free) - 1n };
}

/** The number that an address is, when it is one. */
function numberOf(address: string): bigint {
  if (isIP(address) === 4) return address.split(".").reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  // An IPv4 address at the end is two groups.
  const hex = address.replace(/[\d.]+$/, (tail) => {
    if (!tail.includes(".")) return tail;
    const value = numberOf(tail);
    return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
  });
  const [before = "", after] = hex.split("::");
  const groups = (text: string | undefined) => (text ? text.split(":") : []);
  const zeros = after === undefined ? 0 : 8 - groups(before).length - groups(after).length;
  const all = [...groups(before), ...new Array<string>(zeros).fill("0"), ...groups(after)];
  return all.reduce((sum, group) => sum * 65536n + BigInt(`0x${group}`), 0n);
}
