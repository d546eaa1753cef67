import type { Socket } from "node:net";

/** So many pipes of a box are read on; whoever writes to an older one finds nobody reading. */
const MOST_PIPES = 16;
const PAUSE_MS = 100;

/**
 * The descriptors that all boxes of a server may have for what commands left behind; others need them, too. What cannot be
 * let go of is counted also beyond it.
 */
export class LeftoverRoom {
  #free: number;

  constructor(descriptors: number) {
    this.#free = descriptors;
  }

  get isFull(): boolean {
    return this.#free <= 0;
  }

  take(): boolean {
    if (this.isFull) return false;
    this.hold();
    return true;
  }

  hold(): void {
    this.#free -= 1;
  }

  giveBack(): void {
    this.#free += 1;
  }
}

/**
 * Reads what background processes print after their command has ended, and drops it: otherwise they would die of it, or stand
 * still. Slowly, so that one that prints for ever costs the server next to nothing. Where there is no room, a box loses its
 * own oldest pipe, never that of another.
 */
export class Leftovers {
  readonly #room: LeftoverRoom;
  readonly #pipes = new Set<Socket>();

  constructor(room: LeftoverRoom) {
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
    pipe.on("data", () => {
      pipe.pause();
      setTimeout(() => pipe.resume(), PAUSE_MS).unref();
    });
    pipe.resume();
  }

  close(): void {
    for (const pipe of this.#pipes) this.#drop(pipe);
  }

  #drop(pipe: Socket): void {
    if (this.#pipes.delete(pipe)) this.#room.giveBack();
    pipe.destroy();
  }
}
