import { randomBytes, timingSafeEqual } from "node:crypto";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, isIP, type LookupFunction, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isPublicAddress } from "../url/address.ts";
import type { UrlPolicy, Verdict } from "../url/policy.ts";

const MAX_CONNECTIONS = 512;
const USER = "browser";
const UNAUTHENTICATED = [
  "HTTP/1.1 407 Proxy Authentication Required",
  'Proxy-Authenticate: Basic realm="agentfense"',
  "Connection: close",
  "Content-Length: 0",
  "\r\n",
].join("\r\n");
/** Said by each side to its neighbour, and not passed on. */
const HOP_BY_HOP = new Set([
  ..."connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade".split(" "),
  // Node frames the content itself.
  "transfer-encoding",
]);

/**
 * The only way out for a browser on this machine. Names are looked up here, and the connection is made to an address
 * that was looked at: a name that means one thing when it is checked and another when it is used does not help.
 */
export class EgressProxy implements AsyncDisposable {
  readonly credentials: { readonly username: string; readonly password: string };
  readonly #server: Server;
  readonly #policy: UrlPolicy;
  readonly #onRefused: (where: string, reason: string) => void;
  readonly #expected: Buffer;
  readonly #sockets = new Set<Duplex>();

  private constructor(policy: UrlPolicy, onRefused: (where: string, reason: string) => void) {
    this.#policy = policy;
    this.#onRefused = onRefused;
    this.credentials = { username: USER, password: randomBytes(24).toString("base64url") };
    this.#expected = Buffer.from(`Basic ${Buffer.from(`${USER}:${this.credentials.password}`).toString("base64")}`);
    this.#server = createServer((incoming, outgoing) => void this.#forward(incoming, outgoing));
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on("connect", (incoming, socket, head) => void this.#tunnel(incoming, socket, head));
    this.#server.on("clientError", (_error, socket) => socket.destroy());
  }

  static async listen(policy: UrlPolicy, onRefused: (where: string, reason: string) => void): Promise<EgressProxy> {
    const proxy = new EgressProxy(policy, onRefused);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** https, and WebSockets. */
  async #tunnel(incoming: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    this.#track(client);
    client.on("error", () => client.destroy());
    if (!this.#isOurs(incoming)) {
      client.end(UNAUTHENTICATED);
      return;
    }
    const target = URL.parse(`http://${incoming.url}/`);
    const port = target?.port === "" ? "80" : target?.port;
    if (target === null || port === undefined) {
      client.destroy();
      return;
    }
    try {
      const server = await this.#connect(target.hostname, Number(port), incoming.url ?? "");
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      if (head.length > 0) server.write(head);
      await Promise.all([pipeline(client, server), pipeline(server, client)]);
    } catch {
      // Refused, not to be reached, or one side hung up: for the other it is the end.
      client.destroy();
    }
  }

  /** http, where the whole URL is known. */
  async #forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    if (!this.#isOurs(incoming)) {
      outgoing.writeHead(407, { "Proxy-Authenticate": 'Basic realm="agentfense"' }).end();
      return;
    }
    const url = URL.parse(incoming.url ?? "");
    try {
      if (url?.protocol !== "http:") throw new Error("not for a proxy");
      const port = Number(url.port || 80);
      const verdict = this.#policy.judge(url.href);
      const connection = await this.#connect(url.hostname, port, url.href, verdict);
      const outward = request({
        // Instead of an agent, which would keep the connection for the next request.
        createConnection: () => connection,
        method: incoming.method,
        path: `${url.pathname}${url.search}`,
        headers: [...endToEnd(incoming.rawHeaders), "Connection", "close"],
        setDefaultHeaders: false,
      });
      outward.on("error", () => {});
      const answered = once(outward, "response") as Promise<[IncomingMessage]>;
      const [, [response]] = await Promise.all([pipeline(incoming, outward), answered]);
      outgoing.writeHead(response.statusCode ?? 502, response.statusMessage, endToEnd(response.rawHeaders));
      await pipeline(response, outgoing);
    } catch {
      incoming.destroy();
    }
  }

  /** To an address that was looked at. Throws if there is none. */
  async #connect(
    hostname: string,
    port: number,
    where: string,
    verdict: Verdict = this.#policy.judgeConnection(hostname, String(port)),
  ): Promise<Socket> {
    if (!verdict.allowed) return this.#refuse(where, verdict.reason);
    const host = hostname.replace(/^\[|\]$/g, "");
    const addresses = isIP(host) === 0 ? await lookup(host, { all: true }) : [{ address: host, family: isIP(host) }];
    const isMeant = (address: string): boolean =>
      verdict.mayBePrivate || isPublicAddress(address) || this.#isNamed(address, port);
    const privateOne = addresses.find(({ address }) => !isMeant(address));
    if (privateOne !== undefined)
      return this.#refuse(where, `${host} is ${privateOne.address}, an address of this machine or its networks`);
    const checked: LookupFunction = (_name, { all }, done) => {
      if (all === true) done(null, addresses);
      else done(null, addresses[0]?.address ?? "", addresses[0]?.family);
    };
    const socket = connect({ host, port, lookup: checked, autoSelectFamily: true });
    this.#track(socket);
    // Whoever uses it learns of it in his own way.
    socket.on("error", () => {});
    await once(socket, "connect");
    return socket;
  }

  /** Somebody allowed this very address. */
  #isNamed(address: string, port: number): boolean {
    const verdict = this.#policy.judgeConnection(isIP(address) === 6 ? `[${address}]` : address, String(port));
    return verdict.allowed && verdict.mayBePrivate;
  }

  #refuse(where: string, reason: string): never {
    this.#onRefused(where, reason);
    throw new Error(reason);
  }

  #isOurs(incoming: IncomingMessage): boolean {
    const given = Buffer.from(incoming.headers["proxy-authorization"] ?? "");
    return given.length === this.#expected.length && timingSafeEqual(given, this.#expected);
  }

  #track(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}

/** Names and values in turn, as Node has them. */
function endToEnd(rawHeaders: readonly string[]): string[] {
  const isKept = (i: number): boolean => !HOP_BY_HOP.has(rawHeaders[i - (i % 2)]?.toLowerCase() ?? "");
  return rawHeaders.filter((_, i) => isKept(i));
}
