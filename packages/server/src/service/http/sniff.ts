import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

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
    socket.off("readable", look);
    socket.off("close", stop);
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
  socket.on("readable", look);
  socket.on("close", stop);
}
