import type { Socket } from "node:net";
import { Readable } from "node:stream";

const HIGH_WATER_BYTES = 65_536;

/**
 * Readable ends that are filled from one connection. The connection is read only while every one of them has room, so a
 * reader that stops also stops the command; one that was destroyed takes no part any more.
 */
export class Outputs {
  readonly #connection: Socket;
  readonly #full = new Set<Readable>();
  readonly #ended = new Set<Readable>();
  /** Bytes to fetch although a reader has no room. */
  #granted = 0;

  constructor(connection: Socket) {
    this.#connection = connection;
  }

  open(): Readable {
    const output = new Readable({
      highWaterMark: HIGH_WATER_BYTES,
      read: () => this.#hasRoom(output),
      destroy: (error, done) => {
        this.#hasRoom(output);
        done(error);
      },
    });
    // Whoever gave up on a stream must not bring the server down with it.
    output.on("error", () => {});
    return output;
  }

  push(output: Readable, data: Buffer): void {
    if (output.destroyed || this.#ended.has(output)) return;
    if (output.push(data)) return;
    if (this.#granted > 0) {
      this.#granted -= data.length;
      return;
    }
    this.#full.add(output);
    this.#connection.pause();
  }

  /** Idempotent; whatever comes for it later is lost. */
  end(output: Readable): void {
    if (this.#ended.has(output)) return;
    this.#ended.add(output);
    this.#full.delete(output);
    if (!output.destroyed) output.push(null);
  }

  /** Fetches so much more, room or not: what a command that was just signalled may have in front of its end. */
  grant(bytes: number): void {
    this.#granted = bytes;
    this.#full.clear();
    this.#connection.resume();
  }

  /** From now on everything is fetched, room or not: for a command that is dead, what is left is bounded. */
  drain(): void {
    this.grant(Number.POSITIVE_INFINITY);
  }

  #hasRoom(output: Readable): void {
    if (this.#full.delete(output) && this.#full.size === 0) this.#connection.resume();
  }
}
