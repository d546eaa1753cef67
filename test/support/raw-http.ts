import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { HANG_MS } from "./eventually.ts";

// Requests as nobody's client would send them.

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** One gRPC message with its five bytes in front. */
export function grpcFrame(message: Uint8Array, options: { compressed?: boolean; length?: number } = {}): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(options.compressed ? 1 : 0, 0);
  head.writeUInt32BE(options.length ?? message.length, 1);
  return Buffer.concat([head, message]);
}

/**
 * A POST over HTTP/2 with exactly these bytes; `headers` of the answer has its trailers too. A stream that was cut is an answer
 * with status 0 and the reason as `error`.
 */
export async function http2Post(
  address: string,
  path: string,
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawAnswer> {
  const session = connectHttp2(`http://${address}`, { maxSendHeaderBlockLength: 1024 * 1024 });
  const { promise, resolve } = Promise.withResolvers<RawAnswer>();
  const cut = (error: unknown): void =>
    resolve({ status: 0, headers: { error: String(error) }, body: Buffer.alloc(0) });
  session.on("error", cut);
  try {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc+proto",
      te: "trailers",
      ...headers,
    });
    const collected: Record<string, string> = {};
    const chunks: Buffer[] = [];
    const collect = (more: object): void => {
      for (const [name, value] of Object.entries(more)) collected[name] = String(value);
    };
    stream.on("response", collect);
    stream.on("trailers", collect);
    stream.on("data", (chunk: Buffer) => void chunks.push(chunk));
    stream.on("error", cut);
    stream.on("close", () => {
      const reset = stream.rstCode === constants.NGHTTP2_NO_ERROR ? {} : { reset: String(stream.rstCode) };
      resolve({
        status: Number(collected[":status"] ?? 0),
        headers: { ...collected, ...reset },
        body: Buffer.concat(chunks),
      });
    });
    stream.setTimeout(HANG_MS, () => stream.close());
    stream.end(body);
    return await promise;
  } finally {
    session.destroy();
  }
}

/** Sends these bytes over a connection of their own and gives everything that comes back, as text. */
export async function rawExchange(address: string, bytes: string | Uint8Array, hangMs = HANG_MS): Promise<string> {
  const [, host = "127.0.0.1", port = ""] = /^(?:http:\/\/)?(.*):(\d+)$/.exec(address) ?? [];
  const { promise, resolve } = Promise.withResolvers<string>();
  const chunks: Buffer[] = [];
  const socket = connect({ host, port: Number(port) });
  const end = (): void => resolve(Buffer.concat(chunks).toString("latin1"));
  socket.on("data", (chunk) => void chunks.push(chunk));
  socket.on("error", end);
  socket.on("close", end);
  socket.setTimeout(hangMs, () => socket.destroy());
  socket.write(bytes);
  return await promise;
}

/** An HTTP/1.1 request line and headers as they are given, with `Connection: close`; no header is added. */
export function rawRequest(line: string, headers: Readonly<Record<string, string>>, body = ""): string {
  const lines = Object.entries({ ...headers, Connection: "close" }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1] ?? 0);
}
