import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { ServiceLimits } from "./limits.ts";

/** "PRI" begins the HTTP/2 preface and no request line of HTTP/1. */
const HTTP2_START = Buffer.from("PRI", "latin1");

/**
 * Finds out what a new connection speaks; what was read for it goes back. A client that says nothing in time is cut off.
 */
export function sniffProtocol(socket: Socket, timeoutMs: number, found: (protocol: "http1" | "http2") => void): void {
  const { encrypted = false, alpnProtocol } = socket as Partial<TLSSocket>;
  if (encrypted) {
    found(alpnProtocol === "h2" ? "http2" : "http1");
    return;
  }

  let start: Buffer = Buffer.alloc(0);
  const silence = setTimeout(() => socket.destroy(), timeoutMs);
  const stop = (): void => {
    clearTimeout(silence);
    socket.off("readable", look).off("end", leave).off("close", stop);
  };
  const look = (): void => {
    const bytes = socket.read() as Buffer | null;
    if (bytes === null) return;
    start = Buffer.concat([start, bytes]);
    const known = start.subarray(0, HTTP2_START.length);
    const mayBeHttp2 = HTTP2_START.subarray(0, known.length).equals(known);
    if (mayBeHttp2 && known.length < HTTP2_START.length) return;
    stop();
    socket.unshift(start);
    found(mayBeHttp2 ? "http2" : "http1");
  };
  // Whoever only looked whether somebody listens is not waited for.
  const leave = (): void => void socket.destroy();
  socket.on("readable", look).on("end", leave).on("close", stop);
}

/** Bytes of all streams of a connection that may be on their way before we read them. */
const CONNECTION_WINDOW = 4 * 1024 * 1024;
const PING_TIMEOUT_MS = 20_000;

/** Ends a connection that has no call for a while, or whose peer does not answer any more. */
export function tendSession(session: ServerHttp2Session, limits: ServiceLimits): void {
  let streams = 0;
  // Not the session's own timeout: that goes on when the session has ended, and keeps it in memory until it is over.
  const idle = setTimeout(() => {
    if (streams === 0) session.close();
    else demandAnswer(session);
    idle.refresh();
  }, limits.idleTimeoutMs).unref();
  session.on("stream", (stream: ServerHttp2Stream) => {
    streams += 1;
    idle.refresh();
    stream.once("close", () => {
      streams -= 1;
      if (!session.destroyed) idle.refresh();
    });
  });
  session.once("connect", () => session.setLocalWindowSize(CONNECTION_WINDOW));
  session.on("error", () => session.destroy());
  session.once("close", () => clearTimeout(idle));
}

/** A quiet stream is fine (an event watch), a dead peer is not. */
function demandAnswer(session: ServerHttp2Session): void {
  if (session.closed || session.destroyed) return;
  const silence = setTimeout(() => session.destroy(), PING_TIMEOUT_MS);
  silence.unref();
  const sent = session.ping(() => clearTimeout(silence));
  if (!sent) clearTimeout(silence);
  session.once("close", () => clearTimeout(silence));
}
