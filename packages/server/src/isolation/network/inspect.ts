import type { Socket } from "node:net";
import { connect, type SecureContext, TLSSocket } from "node:tls";
import type { SandboxAuthority } from "./certificates.ts";
import { carriesTls } from "./connection.ts";
import { DialError } from "./dial.ts";
import type { ReadConnection } from "./request-rules.ts";
import type { RequestReader } from "./requests.ts";
import { readStreams } from "./streams.ts";

const HANDSHAKE_WITHIN_MS = 10_000;

/** The connection that is opened, without what opening it adds. */
export interface OpenedConnection extends Omit<ReadConnection, "isSecure"> {
  /** A connection to the host's address, which was checked. */
  dial(): Promise<Socket>;
}

/**
 * Opens a TLS connection of a box: towards the box with a certificate of the sandbox's authority, towards the host with the host's
 * own certificate, verified as a program outside would. HTTP/1.1 is spoken on both, and HTTP/2 if the client speaks nothing else.
 * The socket's first bytes, which were read to find the name, have been put back.
 */
export function openTls(
  socket: Socket,
  connection: OpenedConnection,
  { authority, reader, trust }: { authority: SandboxAuthority; reader: RequestReader; trust: SecureContext },
): void {
  const { host } = connection;
  const opened = new TLSSocket(carriesTls(socket), {
    isServer: true,
    secureContext: authority.contextFor(host),
    ALPNProtocols: ["http/1.1", "h2"], // the first one that the client has as well
  });
  const end = (): void => void socket.destroy();
  const timer = setTimeout(end, HANDSHAKE_WITHIN_MS).unref();
  opened.once("error", end);
  opened.once("close", () => {
    clearTimeout(timer);
    end();
  });
  opened.once("secure", () => {
    clearTimeout(timer);
    const protocol = opened.alpnProtocol === "h2" ? "h2" : "http/1.1";
    const connectUpstream = async () => verified(await connection.dial(), { host, trust, protocol });
    const read = { ...connection, isSecure: true, connect: connectUpstream };
    if (protocol === "h2") readStreams(opened, read);
    else reader.accept(opened, read);
  });
}

/** Rejects when the certificate is not one for the host that the store trusts, or the host does not speak the protocol. */
async function verified(
  socket: Socket,
  { host, trust, protocol }: { host: string; trust: SecureContext; protocol: "http/1.1" | "h2" },
): Promise<TLSSocket> {
  const upstream = connect({
    socket: carriesTls(socket),
    servername: host,
    secureContext: trust,
    ALPNProtocols: [protocol],
  });
  const timer = setTimeout(() => upstream.destroy(new Error("no answer")), HANDSHAKE_WITHIN_MS).unref();
  try {
    await new Promise<void>((resolve, reject) => {
      upstream.once("secureConnect", resolve);
      upstream.once("error", reject);
      upstream.once("close", () => reject(new Error("it closed the connection")));
    });
    if (protocol === "h2" && upstream.alpnProtocol !== "h2") throw new Error("it does not speak HTTP/2");
  } catch (cause) {
    upstream.destroy();
    throw new DialError(`${host} cannot be reached: ${(cause as Error).message}`, { isRefused: false, cause });
  } finally {
    clearTimeout(timer);
  }
  upstream.on("error", () => upstream.destroy());
  return upstream;
}
