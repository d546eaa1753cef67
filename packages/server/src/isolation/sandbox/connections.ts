import type { Socket } from "node:net";
import type { DescriptorRoom } from "../backend/descriptor-room.ts";
import { IsolationError } from "../backend/isolation-error.ts";

/** How many connections a sandbox may have: as many as a browser with a few pages, or a busy test run, needs. */
const MOST_OF_A_SANDBOX = 256;

/** The connections to the ports of one sandbox. The room is for as many as all sandboxes together may have. */
export class Connections {
  readonly #room: DescriptorRoom;
  readonly #open = new Set<Socket>();
  #count = 0;

  constructor(room: DescriptorRoom) {
    this.#room = room;
  }

  async add(connect: () => Promise<Socket>): Promise<Socket> {
    if (this.#count >= MOST_OF_A_SANDBOX)
      throw tooMany(`the sandbox has ${this.#count} connections to its ports already`);
    if (!this.#room.take()) throw tooMany("the server has as many connections to ports as it can hold");
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

function tooMany(message: string): IsolationError {
  return new IsolationError("RESOURCES_EXHAUSTED", message, { hint: "close some of them" });
}
