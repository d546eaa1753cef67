import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";

/** What is at a path: a page, or more than that. */
export type Content =
  | string
  | { readonly status?: number; readonly headers?: Record<string, string>; readonly body?: string | Buffer };

/** A site on the loopback of this machine, WebSockets included. */
export class TestSite implements AsyncDisposable {
  /** "GET /path" and "WS /path", as they came. */
  readonly seen: string[] = [];
  readonly #server: Server;

  private constructor(contentAt: (path: string, site: TestSite) => Content | undefined) {
    this.#server = createServer((incoming, outgoing) => {
      this.seen.push(`${incoming.method} ${incoming.url}`);
      const content = contentAt(incoming.url ?? "", this) ?? { status: 404, body: "nothing" };
      const { status = 200, headers = {}, body = "" } = typeof content === "string" ? { body: content } : content;
      outgoing.writeHead(status, { "Content-Type": "text/html; charset=utf-8", ...headers }).end(body);
    });
    this.#server.on("upgrade", (incoming: IncomingMessage, socket) => {
      this.seen.push(`WS ${incoming.url}`);
      const accept = createHash("sha1")
        .update(`${incoming.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest("base64");
      socket.on("error", () => {});
      const headers = ["Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
      socket.write(["HTTP/1.1 101 Switching Protocols", ...headers, "\r\n"].join("\r\n"));
    });
  }

  static async open(contentAt: (path: string, site: TestSite) => Content | undefined = () => ""): Promise<TestSite> {
    const site = new TestSite(contentAt);
    site.#server.listen(0, "127.0.0.1");
    await once(site.#server, "listening");
    return site;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Counts who connects, on all addresses of this machine. */
export class Listener implements AsyncDisposable {
  connections = 0;
  readonly #server: TcpServer;

  private constructor() {
    this.#server = createTcpServer((socket) => {
      this.connections += 1;
      socket.destroy();
    });
  }

  static async open(): Promise<Listener> {
    const listener = new Listener();
    listener.#server.listen(0, "::");
    await once(listener.#server, "listening");
    return listener;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
  }
}
