import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { type IpFamily, NOT_PUBLIC_RANGES } from "@agentfense/permission";

/** What is known of a box's network when it is made. */
export interface Surroundings {
  /** Addresses of this host. One that it gets later is not covered unless it is in a forbidden range. */
  readonly hostAddresses: readonly string[];
  /** The networks the box is in, as address/bits. */
  readonly networks: readonly string[];
  /** Whom the box asks for names. */
  readonly resolvers: readonly string[];
}

/**
 * Where a box with a private network must not get: this host, its neighbours, other boxes, cloud metadata.
 *
 * The policy is a packet filter in the box's network namespace, not a set of routes: a socket that names its device
 * (SO_BINDTODEVICE, IP_PKTINFO; neither needs a privilege) makes the kernel take any destination that a route
 * refuses for a neighbour on that device, and hosts answer for all their addresses on all their devices. A filter sees
 * every packet, however it was routed. Nor do refused routes get on with reverse path filtering.
 */
export interface EgressPolicy {
  /** Name servers inside of what is forbidden; they may be asked for names and nothing else. */
  readonly resolvers: readonly string[];
  /** Networks as address/bits. */
  readonly forbidden: readonly string[];
}

/** A name server that is this host itself is none for a box: the host is the last thing it may talk to. */
export function egressPolicy(family: IpFamily, { hostAddresses, networks, resolvers }: Surroundings): EgressPolicy {
  const ofFamily = (address: string) => isIP(address) === VERSION[family] && !address.includes("%");
  const host = new BlockList();
  for (const address of hostAddresses.filter(ofFamily)) host.addAddress(address, family);
  return {
    resolvers: unique(resolvers.filter((address) => ofFamily(address) && !host.check(address, family))),
    forbidden: unique([
      ...NOT_PUBLIC_RANGES[family],
      ...networks.filter((network) => ofFamily(network.replace(/\/\d+$/, ""))),
      ...hostAddresses.filter(ofFamily).map((address) => `${address}/${BITS[family]}`),
    ]),
  };
}

/** The policy for iptables-restore or ip6tables-restore. Refusing is answered at once, so that no program waits in vain. */
export function packetFilter(family: IpFamily, policy: EgressPolicy): string {
  return [
    "*filter",
    ":INPUT ACCEPT [0:0]",
    ":FORWARD DROP [0:0]",
    ":OUTPUT ACCEPT [0:0]",
    "-A OUTPUT -o lo -j ACCEPT",
    ...NEIGHBOUR_DISCOVERY[family].map((type) => `-A OUTPUT -p ipv6-icmp --icmpv6-type ${type} -j ACCEPT`),
    ...policy.resolvers.flatMap((address) =>
      ["udp", "tcp"].map((protocol) => `-A OUTPUT -d ${address} -p ${protocol} --dport 53 -j ACCEPT`),
    ),
    ...policy.forbidden.map((network) => `-A OUTPUT -d ${network} -j REJECT`),
    "COMMIT",
    "",
  ].join("\n");
}

/** The addresses of this host as it is now; those of its loopback mean somebody else in another namespace. */
export function hostAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => !internal)
    .map(({ address }) => address);
}

/** The name servers of a resolv.conf. */
export function resolversIn(text: string): string[] {
  return [...text.matchAll(/^[ \t]*nameserver[ \t]+(\S+)/gm)].map(([, address = ""]) => address);
}

const VERSION = { ipv4: 4, ipv6: 6 } as const;
const BITS = { ipv4: 32, ipv6: 128 } as const;

// Without these packets, which only the kernel makes, there is no IPv6: router and neighbour solicitation, neighbour
// advertisement, membership report.
const NEIGHBOUR_DISCOVERY: Readonly<Record<IpFamily, readonly number[]>> = { ipv4: [], ipv6: [133, 135, 136, 143] };

function unique(items: readonly string[]): string[] {
  return [...new Set(items)];
}
