import type { Socket } from "node:net";
import type { Transform } from "node:stream";
import { TLSSocket } from "node:tls";

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
 * Passes bytes both ways as they are: each end's finish is passed on by itself, a slow reader holds up the writer, and what breaks
 * on one side breaks on the other. What the other sends may be changed on its way back.
 */
export function join(one: Socket, other: Socket, back?: Transform): void {
  one.pipe(other);
  (back === undefined ? other : other.pipe(back)).pipe(one);
  back?.once("error", () => cut(other));
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
