import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { syscalls } from "@agentfense/fuse";

/** Where tests have the names of a sandbox: a part of this machine's loopback network. */
export const LOOPBACK_NAMES = "127.80.0.0";

/** Sockets as a box's network would have them, on this machine, and the ports where they really are. */
export async function gateListeners(ports: readonly number[]) {
  const udp = createSocket("udp4").bind(0, "127.0.0.1");
  await once(udp, "listening");
  const dnsUdp = duplicate(udp);
  const dnsUdpPort = udp.address().port;
  udp.close();
  const dnsTcp = await listener("127.0.0.1");
  const tcp = await Promise.all(ports.map(async (port) => ({ port, ...(await listener("0.0.0.0")) })));
  return {
    listeners: {
      dnsUdp,
      dnsTcp: dnsTcp.descriptor,
      tcp: tcp.map(({ port, descriptor }) => ({ port, descriptor })),
    },
    dnsUdpPort,
    dnsTcpPort: dnsTcp.actualPort,
    actualPort: (port: number): number => tcp.find((one) => one.port === port)!.actualPort,
  };
}

async function listener(address: string) {
  const server = createServer().listen(0, address);
  await once(server, "listening");
  const { port: actualPort } = server.address() as AddressInfo;
  const descriptor = duplicate(server);
  server.close();
  return { descriptor, actualPort };
}

/** What is left when Node has closed its own. */
function duplicate(socket: object): number {
  const handle = Object.entries(socket).find(([key]) => key === "_handle")?.[1] as { readonly fd: number } | undefined;
  const state = Object.getOwnPropertySymbols(socket).map((key) => (socket as Record<symbol, unknown>)[key]);
  const inner = state.find((value): value is { handle: { fd: number } } => isWithHandle(value));
  return syscalls.dup((handle ?? inner!.handle).fd);
}

function isWithHandle(value: unknown): boolean {
  return typeof value === "object" && value !== null && "handle" in value;
}
