import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { processes, syscalls } from "@agentfense/fuse";
import { readFrom } from "./descriptors.ts";

/** Most commands are over by then, and what they printed is in the pipe: it is read once, and nobody had to wait for it. */
const PATIENCE_MS = 5;

/**
 * What a command prints, until it has ended. Processes that it left behind may have the pipe open and go on printing: that is
 * not the command's output any more, and must not hold its result up.
 */
export class PipeOutput extends Readable {
  readonly #fd: number;
  readonly #onLeft: (pipe: Socket) => void;
  /** From when the output has to be waited for. */
  #socket: Socket | undefined;
  #patience: NodeJS.Timeout | undefined;
  /** All that was written when the command ended, counted from the start. */
  #owed = Number.POSITIVE_INFINITY;
  /** The pipe is somebody else's, or closed. */
  #isGivenUp = false;

  /** @param onLeft is given the pipe when the command has ended and others still write to it */
  constructor(fd: number, onLeft: (pipe: Socket) => void) {
    super({ highWaterMark: 64 * 1024 });
    this.#fd = fd;
    this.#onLeft = onLeft;
  }

  /** Bytes that the command wrote and the consumer of the stream has not been given: in the pipe, or in our buffers. */
  get waiting(): number {
    if (this.#isGivenUp || this.#socket?.destroyed) return this.readableLength;
    return Math.max(0, processes.bytesWaiting(this.#fd)) + (this.#socket?.readableLength ?? 0) + this.readableLength;
  }

  /** The command has ended: the stream does so when all that is there by now was read. */
  commandEnded(): void {
    if (this.#isGivenUp) return;
    if (this.#socket === undefined) this.#takeAll();
    else if (!this.#socket.destroyed && !processes.hasNoWriter(this.#fd)) {
      this.#owed = this.#socket.bytesRead + Math.max(0, processes.bytesWaiting(this.#fd));
      this.#endWhenPaid();
    }
  }

  override _read(): void {
    if (this.#isGivenUp) return;
    if (this.#socket === undefined) this.#patience ??= setTimeout(() => this.#listen(), PATIENCE_MS).unref();
    else this.#socket.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.#isGivenUp) {
      this.#giveUp();
      if (this.#socket === undefined) syscalls.close(this.#fd);
      else this.#socket.destroy();
    }
    callback(error);
  }

  #listen(): void {
    this.#socket = readFrom(this.#fd);
    this.#socket.on("data", this.#onData);
    this.#socket.once("close", this.#onClose);
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#socket?.pause();
    this.#endWhenPaid();
  };

  readonly #onClose = (): void => {
    this.push(null);
  };

  #endWhenPaid(): void {
    const socket = this.#socket;
    if (this.#isGivenUp || socket === undefined || socket.bytesRead < this.#owed || socket.readableLength > 0) return;
    this.#giveUp();
    socket.off("data", this.#onData).off("close", this.#onClose);
    this.push(null);
    this.#onLeft(socket);
  }

  /** Nobody has read from the pipe. A process in the box may: a read that finds less than was promised must not wait. */
  #takeAll(): void {
    this.#giveUp();
    const count = Math.max(0, processes.bytesWaiting(this.#fd));
    if (count > 0 && processes.setNonBlocking(this.#fd) >= 0) {
      const bytes = Buffer.allocUnsafe(count);
      const found = syscalls.read(this.#fd, bytes, count);
      if (found > 0) this.push(bytes.subarray(0, found));
    }
    this.push(null);
    if (processes.hasNoWriter(this.#fd)) syscalls.close(this.#fd);
    else this.#onLeft(readFrom(this.#fd));
  }

  #giveUp(): void {
    this.#isGivenUp = true;
    clearTimeout(this.#patience);
  }
}
