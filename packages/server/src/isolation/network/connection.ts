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

/**
 * Ends a connection at once, by a reset where that is possible. It is not inside of TLS, nor while the last bytes are still on their way: libuv refuses, and Node would then
 * neither close the descriptor nor say so.
 */
export function cut(socket: Socket): void {
  if (socket instanceof TLSSocket || (socket.writableEnded && !socket.writableFinished)) socket.destroy();
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
