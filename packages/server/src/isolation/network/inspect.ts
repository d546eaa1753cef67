import type { Socket } from "node:net";
import { connect, type SecureContext, TLSSocket } from "node:tls";
import type { SandboxAuthority } from "./certificates.ts";
import { carriesTls } from "./connection.ts";
import { DialError } from "./dial.ts";
import type { RequestConnection, RequestReader } from "./requests.ts";

const HANDSHAKE_WITHIN_MS = 10_000;

/** The connection that is opened, without what opening it adds. */
export interface OpenedConnection extends Omit<RequestConnection, "isSecure" | "connect"> {
  /** A connection to the host's address, which was checked. */
  dial(): Promise<Socket>;
}

/**
 * Opens a TLS connection of a box: towards the box with a certificate of the sandbox's authority, towards the host with the host's
 * own certificate, verified as a program outside would. HTTP/1.1 is spoken on both; a client that insists on HTTP/2 is refused by TLS.
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
    ALPNProtocols: ["http/1.1"],
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
    const connectUpstream = async (): Promise<TLSSocket> => verified(await connection.dial(), host, trust);
    reader.accept(opened, { ...connection, isSecure: true, connect: connectUpstream });
  });
}

/** Rejects when the certificate is not one for the host that the store trusts. */
async function verified(socket: Socket, host: string, trust: SecureContext): Promise<TLSSocket> {
  const upstream = connect({
    socket: carriesTls(socket),
    servername: host,
    secureContext: trust,
    ALPNProtocols: ["http/1.1"],
  });
  const timer = setTimeout(() => upstream.destroy(new Error("no answer")), HANDSHAKE_WITHIN_MS).unref();
  try {
    await new Promise<void>((resolve, reject) => {
      upstream.once("secureConnect", resolve);
      upstream.once("error", reject);
      upstream.once("close", () => reject(new Error("it closed the connection")));
    });
  } catch (cause) {
    upstream.destroy();
    throw new DialError(`${host} cannot be reached: ${(cause as Error).message}`, { isRefused: false, cause });
  } finally {
    clearTimeout(timer);
  }
  upstream.on("error", () => upstream.destroy());
  return upstream;
}
