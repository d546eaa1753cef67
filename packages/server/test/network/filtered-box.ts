import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { gateListeners } from "../../../../test/support/gate-listeners.ts";
import type { Internet } from "../../../../test/support/internet.ts";
import { type Gate, type GateEvent, NetworkGates } from "../../src/isolation/network/gate.ts";
import { NetworkPolicy, parseNetworkRule } from "../../src/isolation/network/policy.ts";
import { openedNames, type SecretWithValue } from "../../src/isolation/network/secrets.ts";

/** A list from its lines. */
export function networkPolicy(...lines: unknown[]): NetworkPolicy {
  return NetworkPolicy.of(lines.map(parseNetworkRule));
}

/** Waits until a socket is closed, in order or by a reset. */
export function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
}

/** A gate in front of a test internet, and the ways of a program in the box, which asks the gate for names as any other. */
export async function openFilteredBox(
  internet: Internet,
  lines: readonly unknown[],
  secrets: readonly SecretWithValue[] = [],
) {
  const gates = new NetworkGates();
  const opening = secrets.length === 0 ? undefined : await gates.prepare(openedNames([], secrets), secrets);
  const policy = networkPolicy(...lines);
  const { listeners, dnsUdpPort, actualPort } = await gateListeners([80, 443, 22]);
  const events: GateEvent[] = [];
  const gate: Gate = await gates.open({
    policy,
    listeners,
    opening,
    onEvent: (event) => events.push(event),
    internet: internet.seam,
  });
  const resolver = new Resolver({ tries: 1 });
  resolver.setServers([`127.0.0.1:${dnsUdpPort}`]);
  const addressOf = async (host: string): Promise<string> => (await resolver.resolve4(host))[0]!;
  const dial = async (host: string, port: number, allowHalfOpen = true): Promise<Socket> => {
    const socket = connect({ host: await addressOf(host), port: actualPort(port), allowHalfOpen });
    socket.on("error", () => {});
    // A gate that refuses may be faster than the news that it accepted.
    await Promise.race([new Promise((connected) => socket.once("connect", connected)), closed(socket)]);
    return socket;
  };
  return {
    gate,
    events,
    /** What programs have for secrets, by name. */
    placeholders: opening?.placeholders ?? {},
    addressOf,
    actualPort,
    dial,
    /** The name that TLS is told may be another than the one that was resolved. */
    async dialTls(host: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
      // Node's TLS may take a reset for the other end's finish, and would then wait for its own.
      const socket = connectTls({
        socket: await dial(host, 443, false),
        servername: host,
        ca: internet.ca,
        ...options,
      });
      await once(socket, "secureConnect");
      return socket.on("error", () => {});
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await gate.close();
      await gates.close();
    },
  };
}

export type FilteredBox = Awaited<ReturnType<typeof openFilteredBox>>;
