import type { Socket } from "node:net";
import type { DescriptorRoom } from "./descriptor-room.ts";
import { IsolationError } from "./isolation-error.ts";

/** Commands of a box that may have left processes behind: each costs the server a descriptor, for as long as they live. */
export const MOST_LEFT = 64;

export function tooManyLeft(): IsolationError {
  return new IsolationError("RESOURCES_EXHAUSTED", "too many earlier commands have left processes running", {
    hint: "start what runs in the background from fewer commands, or stop the sandbox and start it again",
  });
}

/** So many pipes of a box are read on; whoever writes to an older one finds nobody reading. */
const MOST_PIPES = 16;
const PAUSE_MS = 100;

/**
 * Reads what background processes print after their command has ended, and drops it: otherwise they would die of it, or stand
 * still. Slowly, so that one that prints for ever costs the server next to nothing.
 */
export function readSlowly(pipe: Socket, pauseMs: () => number): void {
  pipe.on("data", () => {
    pipe.pause();
    setTimeout(() => pipe.resume(), pauseMs()).unref();
  });
  pipe.resume();
}

/** The pipes of a box that are read slowly. Where there is no room, a box loses its own oldest pipe, never that of another. */
export class Leftovers {
  readonly #room: DescriptorRoom;
  readonly #pipes = new Set<Socket>();

  constructor(room: DescriptorRoom) {
    this.#room = room;
  }

  adopt(pipe: Socket): void {
    const [oldest] = this.#pipes;
    if (this.#pipes.size >= MOST_PIPES && oldest !== undefined) this.#drop(oldest);
    if (!this.#room.take()) {
      if (oldest !== undefined) this.#drop(oldest);
      if (!this.#room.take()) {
        pipe.destroy();
        return;
      }
    }
    this.#pipes.add(pipe);
    pipe.once("close", () => this.#drop(pipe));
    readSlowly(pipe, () => PAUSE_MS);
  }

  close(): void {
    for (const pipe of this.#pipes) this.#drop(pipe);
  }

  #drop(pipe: Socket): void {
    if (this.#pipes.delete(pipe)) this.#room.giveBack();
    pipe.destroy();
  }
}
