import { Readable } from "node:stream";
import { processes } from "@agentfense/fuse";
import { readFrom } from "./descriptors.ts";

/**
 * What a command prints, until it has ended. Processes that it left behind may have the pipe open and go on printing: that is
 * not the command's output any more, and must not hold its result up.
 */
export class PipeOutput extends Readable {
  readonly #fd: number;
  readonly #socket: ReturnType<typeof readFrom>;
  readonly #onLeft: (pipe: ReturnType<typeof readFrom>) => void;
  /** All that was written when the command ended, counted from the start. */
  #owed = Number.POSITIVE_INFINITY;
  #isLeft = false;

  /** @param onLeft is given the pipe when the command has ended and others still write to it */
  constructor(fd: number, onLeft: (pipe: ReturnType<typeof readFrom>) => void) {
    super({ highWaterMark: 64 * 1024 });
    this.#fd = fd;
    this.#onLeft = onLeft;
    this.#socket = readFrom(fd);
    this.#socket.pause();
    this.#socket.on("data", this.#onData);
    this.#socket.once("close", this.#onClose);
  }

  /** Bytes that the command wrote and the consumer of the stream has not been given: in the pipe, or in our buffers. */
  get waiting(): number {
    if (this.destroyed || this.#socket.destroyed) return this.readableLength;
    return Math.max(0, processes.bytesWaiting(this.#fd)) + this.#socket.readableLength + this.readableLength;
  }

  /** The command has ended: the stream does so when all that is there by now was read. */
  commandEnded(): void {
    if (this.#socket.destroyed || this.#isLeft || processes.hasNoWriter(this.#fd)) return; // it ends by itself
    this.#owed = this.#socket.bytesRead + Math.max(0, processes.bytesWaiting(this.#fd));
    this.#endWhenPaid();
  }

  override _read(): void {
    if (!this.#isLeft) this.#socket.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.#isLeft) this.#socket.destroy();
    callback(error);
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#socket.pause();
    this.#endWhenPaid();
  };

  readonly #onClose = (): void => {
    this.push(null);
  };

  #endWhenPaid(): void {
    if (this.#isLeft || this.#socket.bytesRead < this.#owed || this.#socket.readableLength > 0) return;
    this.#isLeft = true;
    this.#socket.off("data", this.#onData).off("close", this.#onClose);
    this.push(null);
    this.#onLeft(this.#socket);
  }
}
