import type { Socket } from "node:net";

/** So many pipes of a box are read on; whoever writes to an older one finds nobody reading. */
const MOST_PIPES = 64;
const PAUSE_MS = 100;

/**
 * Reads what background processes print after their command has ended, and drops it: otherwise they would die of it, or stand
 * still. Slowly, so that one that prints for ever costs the server next to nothing.
 */
export class Leftovers {
  readonly #pipes = new Set<Socket>();

  adopt(pipe: Socket): void {
    this.#pipes.add(pipe);
    pipe.once("close", () => this.#pipes.delete(pipe));
    pipe.on("data", () => {
      pipe.pause();
      setTimeout(() => pipe.resume(), PAUSE_MS).unref();
    });
    pipe.resume();
    const [oldest] = this.#pipes;
    if (this.#pipes.size > MOST_PIPES) oldest?.destroy();
  }

  close(): void {
    for (const pipe of this.#pipes) pipe.destroy();
  }
}
