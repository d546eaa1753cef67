import { once } from "node:events";
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import {
  createServer as createHttp2Server,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, ListenOptions, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Log } from "../../runtime/log.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { formatAddress, type ListenAddress } from "./address.ts";
import { sniffProtocol, tendSession } from "./connections.ts";
import type { ServiceLimits } from "./limits.ts";
import { SocketFile } from "./socket-file.ts";

export type NodeRequest = IncomingMessage | Http2ServerRequest;
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** The two kinds of responses write their head alike, but their types cannot be called as one. */
export function sendHead(response: NodeResponse, status: number, headers: OutgoingHttpHeaders): void {
  (response as ServerResponse).writeHead(status, headers);
}

export function destroyResponse(response: NodeResponse): void {
  if ("stream" in response) response.stream.close();
  else response.destroy();
}

/** The host that a request names. Of two Host headers whoever forwards it may have meant the other one: then it names none. */
export function hostOf(request: NodeRequest): string | undefined {
  if ("stream" in request) return request.authority ?? request.headers.host;
  const { host } = request.headersDistinct;
  return host?.length === 1 ? host[0] : undefined;
}

export function hasBody(request: NodeRequest): boolean {
  if (request.headers["content-length"] !== undefined) return request.headers["content-length"] !== "0";
  if ("stream" in request) return !request.stream.endAfterHeaders;
  return request.headers["transfer-encoding"] !== undefined;
}

/** Node ends the body of a request that was reset as if it were complete: half an upload must not be taken for all of it. */
export function isCutShort(request: NodeRequest): boolean {
  return "stream" in request && (request.stream.aborted || request.stream.rstCode > 0);
}

/** PEM texts. With `clientCa`, clients must show a certificate of that authority. */
export interface TlsOptions {
  readonly cert: string;
  readonly key: string;
  readonly clientCa?: string;
}

export interface ListenerOptions {
  readonly address: ListenAddress;
  readonly tls: TlsOptions | undefined;
  readonly limits: ServiceLimits;
  readonly log: Log;
  /** Default true; false: neither the listener nor its connections keep the process alive. */
  readonly holdsProcess?: boolean;
  /** Must not throw. */
  readonly answer: (request: NodeRequest, response: NodeResponse) => void;
  /** Takes connections that are to become WebSockets. Must not throw. Absent: such requests are answered as any. */
  readonly upgrade?: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined;
}

/** A port, or a socket, that is open. */
export interface Listener {
  /** "127.0.0.1:9000", with the port that was really bound. */
  readonly address: string;
  /** Resolves when the last connection ended after `stop`. */
  readonly closed: Promise<void>;
  /** No new connection and no new stream from here on; connections end with the last call on them. */
  stop(): void;
  /** Ends every connection, whatever runs on it. */
  cut(): Promise<void>;
}

/**
 * One port that speaks HTTP/1.1 and HTTP/2. In cleartext a client's first bytes tell which (gRPC clients start HTTP/2
 * without asking), under TLS the negotiated protocol does.
 *
 * The HTTP/1 server owns the port, because its timeouts for slow headers run only in a server that listens; connections
 * of the other kind are handed to an HTTP/2 server that listens nowhere.
 */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const { limits, tls } = options;
  const http1 = createHttp1(options);
  if (options.upgrade !== undefined) http1.on("upgrade", options.upgrade);
  const http2 = createHttp2(options);
  const sessions = new Set<ServerHttp2Session>();
  const sockets = new Set<Socket>();

  http2.on("session", (session: ServerHttp2Session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    tendSession(session, limits);
  });

  // The transport's own listener comes first, so that a connection is known from its first moment on.
  const event = tls === undefined ? "connection" : "secureConnection";
  const serveHttp1 = http1.listeners(event) as ((socket: Socket) => void)[];
  http1.removeAllListeners(event);
  http1.on(event, (socket: Socket) => {
    // A peer that resets its connection is nobody's error.
    socket.on("error", () => socket.destroy());
    sniffProtocol(socket, limits.headerTimeoutMs, (protocol) => {
      if (protocol === "http1") {
        for (const serve of serveHttp1) serve.call(http1, socket);
        return;
      }
      // HTTP/1 servers keep answering a client that only stopped sending; in HTTP/2 that client is gone.
      socket.allowHalfOpen = false;
      http2.emit("connection", socket);
    });
  });
  http1.prependListener("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.setNoDelay(true);
    if (options.holdsProcess === false) socket.unref();
    // Finds out about peers that vanished without a word.
    socket.setKeepAlive(true, 60_000);
  });
  if (limits.connections > 0) http1.maxConnections = limits.connections;

  const socketFile = await listen(http1, options.address);
  if (options.holdsProcess === false) http1.unref();
  http1.on("error", (error) => options.log({ level: "error", message: `listener: ${error.message}` }));

  const closed = new Promise<void>((resolve) => http1.once("close", resolve));
  const stop = (): void => {
    if (http1.listening) http1.close();
    for (const session of sessions) session.close();
    http1.closeIdleConnections();
  };
  const cut = async (): Promise<void> => {
    stop();
    for (const session of sessions) session.destroy();
    for (const socket of sockets) socket.destroy();
    await closed;
    await socketFile?.remove();
  };
  return { address: formatAddress(socketFile ?? boundPort(http1)), closed, stop, cut };
}

function boundPort(server: Server): ListenAddress {
  const { address, port } = server.address() as AddressInfo;
  return { host: address, port };
}

function createHttp1(options: ListenerOptions): Server {
  const { limits, tls } = options;
  const settings = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerTimeoutMs,
    // Uploads may be long; what is too slow is found by the calls themselves.
    requestTimeout: 0,
    keepAliveTimeout: limits.idleTimeoutMs,
    connectionsCheckingInterval: Math.min(5_000, Math.max(50, limits.headerTimeoutMs / 4)),
    // A client that would rather speak HTTP/2 is content with an answer. Before Node 24.9 it is refused.
    shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === "websocket",
  };
  if (tls === undefined) return createHttpServer(settings, options.answer);
  return createHttpsServer(
    {
      ...settings,
      cert: tls.cert,
      key: tls.key,
      ...(tls.clientCa === undefined ? {} : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
      ALPNProtocols: ["h2", "http/1.1"],
      minVersion: "TLSv1.2",
      handshakeTimeout: limits.headerTimeoutMs,
    },
    options.answer,
  );
}

function createHttp2(options: ListenerOptions): Http2Server {
  const { limits } = options;
  const server = createHttp2Server({
    settings: {
      maxConcurrentStreams: limits.streamsPerConnection,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: 1024 * 1024,
      enablePush: false,
    },
    maxSendHeaderBlockLength: 256 * 1024,
    // Megabytes of a connection's streams together, before new streams are refused. The largest answers must fit.
    maxSessionMemory: 128,
  });
  server.on("request", options.answer);
  // Sessions end by themselves after these; without a listener the process would.
  server.on("sessionError", () => {});
  return server;
}

/** Gives the file of the socket, if it is one. */
async function listen(server: Server, address: ListenAddress): Promise<SocketFile | undefined> {
  try {
    if ("path" in address) return await SocketFile.bind(address.path, (path) => startListening(server, { path }));
    await startListening(server, { port: address.port, ...(address.host === undefined ? {} : { host: address.host }) });
    return undefined;
  } catch (error) {
    if (server.listening) server.close();
    if (error instanceof RuntimeError) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new RuntimeError("RESOURCES_EXHAUSTED", `cannot listen at ${formatAddress(address)}: ${reason}`, {
      cause: error,
    });
  }
}

async function startListening(server: Server, at: ListenOptions): Promise<void> {
  server.listen(at);
  await once(server, "listening");
}
