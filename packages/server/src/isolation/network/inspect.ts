import type { Socket } from "node:net";
import { connect, type SecureContext, TLSSocket } from "node:tls";
import type { SandboxAuthority } from "./certificates.ts";
import type { Connection } from "./connection.ts";
import type { Opener } from "./custody.ts";
import type { NetworkPolicy } from "./policy.ts";
import { type RequestConnection, RequestReader } from "./requests.ts";

const HANDSHAKE_WITHIN_MS = 10_000;

/** Hosts whose TLS is opened: a connection to one ends here, and its requests are looked at. */
export class OpenedTls {
  readonly #opener: Opener;
  readonly #options: OpenedTlsOptions;
  readonly #reader = new RequestReader();

  constructor(opener: Opener, options: OpenedTlsOptions) {
    this.#opener = opener;
    this.#options = options;
  }

  /** Exactly those that the authority was made for: its certificate reaches further down. */
  opens(host: string): boolean {
    return this.#opener.names.some((name) => (name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name));
  }

  /** The socket still has everything that came, the hello too. */
  serve(connection: Connection, dial: () => Promise<Socket>): void {
    const { authority, secrets } = this.#opener;
    const { policy, onDenied, onMisplaced, certificates } = this.#options;
    const { socket, host, port } = connection;
    openTls(
      socket,
      {
        ...{ host, port, secrets, dial },
        allows: (method, target) => policy().allows(host, port, method, target),
        onRequest: () => connection.settle(),
        onDenied: (sentence) => onDenied(connection, sentence),
        onMisplaced: (sentence) => onMisplaced(connection, sentence),
      },
      { authority, reader: this.#reader, trust: this.#opener.trust(certificates) },
    );
  }
}

export interface OpenedTlsOptions {
  policy(): NetworkPolicy;
  onDenied(connection: Connection, sentence: string): void;
  onMisplaced(connection: Connection, sentence: string): void;
  /** Trusted beside those of this host. */
  readonly certificates: readonly string[];
}

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
  const opened = new TLSSocket(socket, {
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
  const upstream = connect({ socket, servername: host, secureContext: trust, ALPNProtocols: ["http/1.1"] });
  const timer = setTimeout(() => upstream.destroy(new Error("no answer")), HANDSHAKE_WITHIN_MS).unref();
  try {
    await new Promise<void>((resolve, reject) => {
      upstream.once("secureConnect", resolve);
      upstream.once("error", reject);
      upstream.once("close", () => reject(new Error("it closed the connection")));
    });
  } catch (error) {
    upstream.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  upstream.on("error", () => upstream.destroy());
  return upstream;
}
