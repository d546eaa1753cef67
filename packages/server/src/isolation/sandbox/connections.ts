import type { Socket } from "node:net";
import { SandboxError } from "../backend/errors.ts";

/** Of one sandbox at a time: as many as a browser with a few pages, or a busy test run, needs. */
const MOST_OF_A_SANDBOX = 256;

/** The connections that all sandboxes together may have to their ports: each costs two descriptors of the server. */
export class ConnectionRoom {
  readonly #most: number;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  take(): void {
    if (this.#taken >= this.#most) throw tooMany(`the server has ${this.#taken} connections to ports already`);
    this.#taken += 1;
  }

  giveBack(): void {
    this.#taken -= 1;
  }
}

/** The connections to the ports of one sandbox. */
export class Connections {
  readonly #room: ConnectionRoom;
  readonly #open = new Set<Socket>();
  #count = 0;

  constructor(room: ConnectionRoom) {
    this.#room = room;
  }

  async add(connect: () => Promise<Socket>): Promise<Socket> {
    if (this.#count >= MOST_OF_A_SANDBOX)
      throw tooMany(`the sandbox has ${this.#count} connections to its ports already`);
    this.#room.take();
    this.#count += 1;
    try {
      const socket = await connect();
      this.#open.add(socket);
      socket.once("close", () => this.#gone(socket));
      return socket;
    } catch (error) {
      this.#gone();
      throw error;
    }
  }

  /** Cuts them all. */
  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #gone(socket?: Socket): void {
    if (socket !== undefined) this.#open.delete(socket);
    this.#count -= 1;
    this.#room.giveBack();
  }
}

function tooMany(message: string): SandboxError {
  return new SandboxError("RESOURCES_EXHAUSTED", message, { hint: "close some of them" });
}
