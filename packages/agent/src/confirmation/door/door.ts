import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Door, DoorCall, DoorCaller } from "@agentfense/doors";
import { type WebSocket, WebSocketServer } from "ws";
import type { ConfirmationBroker } from "../broker.ts";
import { GOING_AWAY } from "../protocol.ts";
import { CONFIRMATIONS_PATH, confirmationKeyIn, offeredProtocols, SUBPROTOCOL } from "./address.ts";
import { type ConfirmationReviewers, serveConnection } from "./connection.ts";
import type { Peer } from "./peer.ts";

export interface ConfirmationDoorOptions {
  /** Default "owner". */
  readonly reviewers?: ConfirmationReviewers | undefined;
  /** Default 30 s. */
  readonly heartbeatMs?: number | undefined;
  /** For the first message. Default 10 s. */
  readonly helloMs?: number | undefined;
  /** Default 1,000. */
  readonly maxConnectionsPerOwner?: number | undefined;
  /** What may wait for a peer to read it. Default 8 MiB. */
  readonly maxBufferedBytes?: number | undefined;
}

/** Around the request in its message. */
const ENVELOPE_BYTES = 4096;

/**
 * The WebSocket endpoint /v1/confirmations: see protocol.ts. Who calls, and whether the page he calls from may, the server
 * has found out before; all that is decided here is what a caller of this role may do.
 */
export function confirmationDoor(broker: ConfirmationBroker, options: ConfirmationDoorOptions = {}): Door {
  return new ConfirmationDoor(broker, options);
}

class ConfirmationDoor implements Door {
  readonly prefix = CONFIRMATIONS_PATH;
  readonly #broker: ConfirmationBroker;
  readonly #options: { readonly [Name in keyof ConfirmationDoorOptions]-?: NonNullable<ConfirmationDoorOptions[Name]> };
  readonly #server: WebSocketServer;
  readonly #peers = new Map<Peer, string | undefined>();
  readonly #heartbeat: NodeJS.Timeout;
  #closed = false;

  constructor(broker: ConfirmationBroker, options: ConfirmationDoorOptions) {
    this.#broker = broker;
    this.#options = {
      reviewers: options.reviewers ?? "owner",
      heartbeatMs: options.heartbeatMs ?? 30_000,
      helloMs: options.helloMs ?? 10_000,
      maxConnectionsPerOwner: options.maxConnectionsPerOwner ?? 1000,
      maxBufferedBytes: options.maxBufferedBytes ?? 8 * 1024 * 1024,
    };
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      // Compression costs memory for each connection, and lets a small message become a large one.
      perMessageDeflate: false,
      maxPayload: broker.maxRequestBytes + ENVELOPE_BYTES,
      // Never the second one, which is the caller's key.
      handleProtocols: () => SUBPROTOCOL,
    });
    this.#heartbeat = setInterval(() => {
      for (const peer of this.#peers.keys()) peer.demandSignOfLife();
    }, this.#options.heartbeatMs).unref();
  }

  keyIn(headers: IncomingHttpHeaders): string | undefined {
    return confirmationKeyIn(headers);
  }

  async answer(request: Request): Promise<Response> {
    const message = `this is a WebSocket endpoint: connect with the subprotocol ${SUBPROTOCOL}`;
    // HTTP/2, which names no Host, forbids the header that HTTP/1.1 demands.
    const headers: Record<string, string> = request.headers.has("host") ? { upgrade: "websocket" } : {};
    return Response.json({ message }, { status: 426, headers });
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, { caller }: DoorCall): void {
    if (this.#closed) refuse(socket, "503 Service Unavailable", "the server ends");
    else if (!offeredProtocols(request.headers).includes(SUBPROTOCOL)) {
      refuse(socket, "400 Bad Request", `ask for the subprotocol ${SUBPROTOCOL}`);
    } else if (this.#connectionsOf(caller.ownerId) >= this.#options.maxConnectionsPerOwner) {
      refuse(socket, "429 Too Many Requests", "there are too many connections already");
    } else this.#server.handleUpgrade(request, socket, head, (webSocket) => this.#serve(webSocket, caller));
  }

  /** The requests that came through here are withdrawn with their connections; others stay with the broker. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    await Promise.all(
      [...this.#peers.keys()].map(async (peer) => {
        peer.close(GOING_AWAY, "the server ends");
        await peer.closed;
      }),
    );
  }

  #serve(webSocket: WebSocket, caller: DoorCaller): void {
    const peer = serveConnection(webSocket, { ...this.#options, broker: this.#broker, caller });
    this.#peers.set(peer, caller.ownerId);
    webSocket.once("close", () => this.#peers.delete(peer));
  }

  #connectionsOf(ownerId: string | undefined): number {
    return [...this.#peers.values()].filter((owner) => owner === ownerId).length;
  }
}

function refuse(socket: Duplex, status: string, message: string): void {
  const body = JSON.stringify({ message });
  socket.on("error", () => {}); // it may be gone by now
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
}
