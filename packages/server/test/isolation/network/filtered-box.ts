import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { HANG_MS } from "../../../../../test/support/eventually.ts";
import { gateListeners } from "../../../../../test/support/gate-listeners.ts";
import type { Internet } from "../../../../../test/support/internet.ts";
import { type Gate, type GateEvent, NetworkGates } from "../../../src/isolation/network/gate.ts";
import { NetworkPolicy, parseNetworkRule } from "../../../src/isolation/network/policy.ts";
import { openedNames, type SecretWithValue } from "../../../src/isolation/network/secrets.ts";

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

/** What Node's own client, which is OpenSSL, sends first. */
export async function realHello(options: ConnectionOptions): Promise<Buffer> {
  const sent = Promise.withResolvers<Buffer>();
  const wire = new Duplex({
    read() {},
    write(piece: Buffer, _encoding, done) {
      sent.resolve(piece);
      done();
    },
  });
  const client = connectTls({ ...options, socket: wire as never }).on("error", () => {});
  const hello = await sent.promise;
  client.destroy();
  return hello;
}

/** A TLS client's first message, in one record, with an extension more. */
export function withExtension(hello: Buffer, type: number, content: Buffer): Buffer {
  let at = 5 + 4 + 2 + 32;
  at += 1 + hello[at]!; // session
  at += 2 + hello.readUInt16BE(at); // suites
  at += 1 + hello[at]!; // compression
  const extension = Buffer.concat([Buffer.alloc(4), content]);
  extension.writeUInt16BE(type, 0);
  extension.writeUInt16BE(content.length, 2);
  const longer = Buffer.concat([hello, extension]);
  longer.writeUInt16BE(hello.readUInt16BE(3) + extension.length, 3);
  longer.writeUIntBE(hello.readUIntBE(6, 3) + extension.length, 6, 3);
  longer.writeUInt16BE(hello.readUInt16BE(at) + extension.length, at);
  return longer;
}

/** A gate in front of a test internet, and the ways of a program in the box, which asks the gate for names as any other. */
export async function openFilteredBox(
  internet: Internet,
  lines: readonly unknown[],
  secrets: readonly SecretWithValue[] = [],
) {
  const gates = new NetworkGates();
  const policy = networkPolicy(...lines);
  const opening = secrets.length === 0 ? undefined : await gates.prepare(openedNames(policy.rules, secrets), secrets);
  const { listeners, dnsUdpPort, actualPort } = await gateListeners([80, 443, 22]);
  const events: GateEvent[] = [];
  const gate: Gate = await gates.open({
    policy,
    listeners,
    opening,
    onEvent: (event) => events.push(event),
    internet: internet.seam,
  });
  // c-ares waits for a few times as long as answers took so far, whatever it is told.
  const resolver = new Resolver({ tries: 8, timeout: HANG_MS });
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
    /** Whose certificates opened connections have. */
    authority: Buffer.from(opening?.trust.authority ?? []),
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
