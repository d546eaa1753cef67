export type IpFamily = "ipv4" | "ipv6";

/**
 * What is not the public internet: this machine, its networks, cloud metadata, and what nobody is given. A box with a private
 * network and a browser on this machine are both kept from it, so there is one list. Networks as address/bits.
 */
export const NOT_PUBLIC_RANGES: Readonly<Record<IpFamily, readonly string[]>> = {
  ipv4: [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10", // carriers' and clouds' own; 100.100.100.200 is a metadata service
    "127.0.0.0/8",
    "168.63.129.16/32", // a cloud's agent service, at a public address
    "169.254.0.0/16", // neighbours; 169.254.169.254 is the usual metadata service
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24", // for documents, as 198.51.100.0/24 and 203.0.113.0/24 are; some use them as private networks
    "192.88.99.0/24", // once relays to IPv6
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4", // multicast reaches services of the host that announce themselves
    "240.0.0.0/4", // with 255.255.255.255, everybody on the same network
  ],
  ipv6: [
    "::/3", // 2000::/3 is the internet, all else is not
    "2001::/23", // Teredo and its like
    "2001:db8::/32", // documents
    "2002::/16", // 6to4, which has IPv4 addresses inside
    "3fff::/20", // documents
    "4000::/2",
    "8000::/1",
  ],
};
