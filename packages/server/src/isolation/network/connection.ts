import type { OnReadOpts, Socket } from "node:net";
import type { Transform } from "node:stream";
import { TLSSocket } from "node:tls";

/** What is read at a time of what is only passed on. */
const PIECE_BYTES = 128 * 1024;

/** Nothing moved for so long: nobody is there any more. */
const IDLE_MS = 60 * 60_000;

/** A connection out of a box. */
export interface Connection {
  readonly socket: Socket;
  /** The listed name whose address it came to. */
  readonly host: string;
  readonly port: number;
  /** Aborted when the box's end is closed. */
  readonly signal: AbortSignal;
  /** It has said what it wants and reached it: it no longer counts as half-open. */
  settle(): void;
}

const carriers = new WeakSet<Socket>();

/** From now on TLS runs over this socket: see `cut`. */
export function carriesTls(socket: Socket): Socket {
  carriers.add(socket);
  return socket;
}

/**
 * Ends a connection at once, by a reset where that is possible. It is not while the last bytes are still on their way, which of a
 * connection with TLS only Node knows: libuv refuses, and Node would then neither close the descriptor nor say so, and could not end the
 * thread.
 */
export function cut(socket: Socket): void {
  const isEnding = socket.writableEnded && !socket.writableFinished;
  if (isEnding || carriers.has(socket) || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/**
 * Reads for a socket whose bytes all go straight to another: into one piece of memory, which is free again when the kernel has taken what
 * was in it. A stream would make an object and a buffer of everything that comes, and that is most of what passing it on costs us.
 */
export class StraightReading {
  /** For the socket's maker. */
  readonly onread: OnReadOpts;
  readonly #to: Socket;
  #from: Socket | undefined;
  /** Until the kernel has taken the rest. */
  #isHeld = false;

  constructor(to: Socket) {
    this.#to = to;
    this.onread = {
      buffer: Buffer.allocUnsafeSlow(PIECE_BYTES),
      callback: (length, piece) => this.#take(length, piece),
    };
  }

  begin(from: Socket): void {
    this.#from = from;
    from.once("end", () => this.#to.end());
    from.resume();
  }

  #take(length: number, piece: Uint8Array): boolean {
    this.#to.write(piece.subarray(0, length), this.#goOn);
    this.#isHeld = this.#to.writableLength > 0;
    return !this.#isHeld;
  }

  readonly #goOn = (): void => {
    if (!this.#isHeld || this.#to.writableLength > 0) return;
    this.#isHeld = false;
    this.#from?.resume();
  };
}

/**
 * Passes bytes both ways as they are: each end's finish is passed on by itself, a slow reader holds up the writer, and what breaks
 * on one side breaks on the other. What the other sends may be changed on its way back, or go straight to the one.
 */
export function join(one: Socket, other: Socket, back?: Transform | StraightReading): void {
  one.pipe(other);
  if (back instanceof StraightReading) back.begin(other);
  else {
    (back === undefined ? other : other.pipe(back)).pipe(one);
    back?.once("error", () => cut(other));
  }
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.once("error", () => cut(to));
    from.once("close", () => {
      // One that came to its end in order may have left the other with something still to be sent.
      if (!from.readableEnded || !from.writableFinished) to.destroy();
    });
  }
  one.setTimeout(IDLE_MS, () => one.destroy());
}
