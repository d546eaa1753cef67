import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { Door, DoorCall, DoorCaller } from "@agentfense/doors";
import { WebSocket } from "ws";
import { eventually } from "../../../../test/support/eventually.ts";
import type { ConfirmationRequest } from "../../src/confirmation/confirmation.ts";

export function request(overrides: Partial<ConfirmationRequest> = {}): ConfirmationRequest {
  return {
    sessionId: "session-1",
    action: "run_code",
    code: "import subprocess\nsubprocess.run(['make'])\n",
    risk: { level: "HIGH", detected: [{ pattern: "python.subprocess", reason: "starts a process", line: 2 }] },
    reason: "it starts a process",
    expiresAt: new Date(Date.now() + 60_000),
    ...overrides,
  };
}

export function expiringIn(ms: number): ConfirmationRequest {
  return request({ expiresAt: new Date(Date.now() + ms) });
}

/** Who has which key. */
export const CALLERS = {
  "alice-key": { ownerId: "alice", role: "user", keyId: "k-alice" },
  "alice-second": { ownerId: "alice", role: "user", keyId: "k-alice-2" },
  "alice-reads": { ownerId: "alice", role: "read-only", keyId: "k-reads" },
  "mallory-key": { ownerId: "mallory", role: "user", keyId: "k-mallory" },
  "admin-key": { ownerId: undefined, role: "admin", keyId: "k-admin" },
} satisfies Record<string, DoorCaller>;

/** Does what the server does before a door is called: asks for a key, and refuses pages from elsewhere. */
export class DoorHost implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  static async serve(door: Door, where: number | string = 0, tls?: { cert: string; key: string }): Promise<DoorHost> {
    const answer: RequestListener = (incoming, response) => {
      const asked = new Request(`http://localhost${incoming.url}`, { headers: { host: incoming.headers.host ?? "" } });
      void door.answer(asked, { caller: CALLERS["admin-key"] } as unknown as DoorCall).then(async (answer) => {
        response.writeHead(answer.status, Object.fromEntries(answer.headers));
        response.end(await answer.text());
      });
    };
    const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
    server.on("upgrade", (incoming, socket, head) => {
      const caller = callerOf(incoming, door);
      const { origin } = incoming.headers;
      if (origin !== undefined && origin !== `http://${incoming.headers.host}`) end(socket, 403);
      else if (caller === undefined || incoming.url !== door.prefix) end(socket, caller === undefined ? 401 : 404);
      else door.upgrade?.(incoming, socket, head, { caller } as DoorCall);
    });
    if (typeof where === "string") server.listen(where);
    else server.listen(where, "127.0.0.1");
    await once(server, "listening");
    return new DoorHost(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** As a network that breaks. */
  cutConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.cutConnections();
    await closed;
  }
}

function callerOf(incoming: IncomingMessage, door: Door): DoorCaller | undefined {
  const bearer = incoming.headers.authorization?.replace(/^Bearer /, "");
  const key = bearer ?? door.keyIn?.(incoming.headers, incoming.url ?? "", incoming.method ?? "");
  return key !== undefined && key in CALLERS ? CALLERS[key as keyof typeof CALLERS] : undefined;
}

function end(socket: Duplex, status: number): void {
  socket.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
}

interface Text {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface RawOptions {
  readonly key?: string;
  readonly headers?: Record<string, string>;
  readonly protocols?: readonly string[];
  readonly autoPong?: boolean;
}

/** A client without any manners of its own. */
export class RawPeer implements Disposable {
  readonly socket: WebSocket;
  readonly received: Text[] = [];
  closeCode: number | undefined;
  #taken = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => this.received.push(JSON.parse(data.toString()) as Text));
    socket.on("close", (code) => {
      this.closeCode = code;
    });
    socket.on("error", () => {});
  }

  static async open(host: { readonly endpoint: string }, options: RawOptions = {}): Promise<RawPeer> {
    const { key = "alice-key", headers, protocols = ["agentfense.confirmations.v1"], autoPong = true } = options;
    const url = `${host.endpoint.replace(/^http/, "ws")}/v1/confirmations`;
    const socket = new WebSocket(url, [...protocols], {
      headers: headers ?? { authorization: `Bearer ${key}` },
      autoPong,
    });
    const peer = new RawPeer(socket);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once("open", () => resolve());
    socket.once("unexpected-response", (outgoing, response) => {
      outgoing.destroy();
      reject(new Error(`HTTP ${response.statusCode}`));
    });
    socket.once("error", reject);
    await promise;
    return peer;
  }

  /** Connected, with the list of what is pending received. */
  static async reviewer(host: { readonly endpoint: string }, options: RawOptions = {}): Promise<RawPeer> {
    const peer = await RawPeer.open(host, options);
    peer.send({ type: "hello", role: "reviewer" });
    await peer.next("welcome");
    return peer;
  }

  send(message: object | string): void {
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** The next message, which has to be of this type. */
  async next(type: string): Promise<Text> {
    await eventually(() => this.received.length > this.#taken || this.closeCode !== undefined);
    const message = this.received[this.#taken];
    if (message?.type !== type) throw new Error(`not ${type}: ${JSON.stringify(message)}, closed ${this.closeCode}`);
    this.#taken += 1;
    return message;
  }

  async closed(): Promise<number> {
    await eventually(() => this.closeCode !== undefined);
    return this.closeCode!;
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }
}
