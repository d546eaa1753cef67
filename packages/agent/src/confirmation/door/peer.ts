import type { WebSocket } from "ws";
import { POLICY_VIOLATION, type ServerText } from "../protocol.ts";

/** A connection, as the door's sessions use it. */
export class Peer {
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #maxBufferedBytes: number;
  /** It sent something since the last look. */
  #heard = true;

  constructor(socket: WebSocket, maxBufferedBytes: number) {
    this.#socket = socket;
    this.#maxBufferedBytes = maxBufferedBytes;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.once("close", () => resolve());
    socket.on("pong", () => this.hear());
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  /** Who does not read what it is sent is dropped: it finds all that is pending when it comes back. */
  send(message: ServerText): void {
    if (!this.isOpen) return;
    if (this.#socket.bufferedAmount > this.#maxBufferedBytes) this.#socket.terminate();
    else this.#socket.send(JSON.stringify(message));
  }

  /** Waits until the message has left this process, or never will. */
  async sendAtItsPace(message: ServerText): Promise<void> {
    if (!this.isOpen) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.send(JSON.stringify(message), () => resolve());
    await promise;
  }

  /** Tells what was wrong, and ends the connection. */
  reject(message: string): void {
    if (!this.isOpen) return;
    this.send({ type: "error", message });
    this.close(POLICY_VIOLATION, message);
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
    // Its part of the goodbye may never come.
    const linger = setTimeout(() => this.#socket.terminate(), LINGER_MS);
    void this.closed.then(() => clearTimeout(linger));
  }

  hear(): void {
    this.#heard = true;
  }

  /** To be called regularly: drops who was silent since the last time. */
  demandSignOfLife(): void {
    if (!this.#heard) {
      this.#socket.terminate();
      return;
    }
    this.#heard = false;
    if (this.isOpen) this.#socket.ping();
  }
}

const LINGER_MS = 1000;
