import {
  Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type Server,
  ServerResponse,
  request as startRequest,
} from "node:http";
import type { Socket } from "node:net";
import { type Connection, join } from "./connection.ts";
import { DialError } from "./dial.ts";
import { type NetworkPolicy, normalHost, refusal } from "./policy.ts";

const HEAD_BYTES = 16 * 1024;
const HEAD_MS = 5000;
const BETWEEN_REQUESTS_MS = 60_000;
/** Requests of one connection that wait for their answers; who sends more ahead is cut off. */
const MOST_AHEAD = 16;

export interface PlainHttpOptions {
  policy(): NetworkPolicy;
  dial(connection: Connection): Promise<Socket>;
  onRefused(connection: Connection, sentence: string, host: string): void;
}

interface Client {
  readonly connection: Connection;
  /** Has at most one connection to the host, which ends with the box's. */
  readonly agent: Agent;
  ahead: number;
  patience: NodeJS.Timeout | undefined;
}

/**
 * HTTP that is not encrypted. Each request is read by Node's strict parser, looked at by itself, and written anew from what was read, so
 * that what was looked at is what the host gets: framing, line ends and order of bytes are ours, not the box's.
 */
export class PlainHttp {
  readonly #options: PlainHttpOptions;
  readonly #server: Server;
  readonly #clients = new WeakMap<object, Client>();

  constructor(options: PlainHttpOptions) {
    this.#options = options;
    this.#server = createServer({
      maxHeaderSize: HEAD_BYTES,
      requireHostHeader: false, // looked at here, with a sentence
      keepAliveTimeout: BETWEEN_REQUESTS_MS,
      requestTimeout: 0, // a body may take long
      noDelay: true,
      // What wants to be something else than WebSocket stays HTTP, as it may.
      ...({ shouldUpgradeCallback: (request: IncomingMessage) => isWebSocket(request) } as object),
    });
    this.#server.on("request", (request, response) => this.#serve(request, response));
    this.#server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
      this.#serve(request, response, () => response.writeContinue());
    });
    this.#server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket as Socket, head));
    this.#server.on("connect", (request, socket) => this.#refuseRaw(request, socket as Socket));
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
      const status = error.code === "HPE_HEADER_OVERFLOW" ? 431 : 400;
      if (socket.writable && error.code !== "ECONNRESET") socket.end(rawAnswer(status, "the request is malformed"));
      else socket.destroy();
    });
  }

  take(connection: Connection): void {
    const { socket, signal } = connection;
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agent.createConnection = (_options, created) => {
      this.#options.dial(connection).then(
        (upstream) => created?.(null, upstream),
        (error: Error) => created?.(error, undefined as never),
      );
      return undefined;
    };
    const client: Client = { connection, agent, ahead: 0, patience: undefined };
    this.#clients.set(socket, client);
    signal.addEventListener("abort", () => {
      clearTimeout(client.patience);
      agent.destroy();
    });
    this.#await(client, HEAD_MS);
    this.#server.emit("connection", socket);
  }

  #await(client: Client, ms: number): void {
    clearTimeout(client.patience);
    client.patience = setTimeout(() => client.connection.socket.destroy(), ms).unref();
  }

  /** Counts a request that has come until its answer is gone. Nothing for one that nobody waits for. */
  #admit(request: IncomingMessage): Client | undefined {
    const client = this.#clients.get(request.socket);
    if (client === undefined || request.socket.destroyed) return undefined;
    clearTimeout(client.patience);
    client.connection.settle();
    client.ahead += 1;
    if (client.ahead <= MOST_AHEAD) return client;
    request.socket.destroy();
    return undefined;
  }

  #serve(request: IncomingMessage, response: ServerResponse, goOn = () => {}): void {
    const client = this.#admit(request);
    if (client === undefined) return;
    response.sendDate = false;
    response.once("close", () => {
      client.ahead -= 1;
      if (client.ahead === 0 && !request.socket.destroyed) this.#await(client, BETWEEN_REQUESTS_MS);
    });
    const problem = this.#problem(request, client);
    if (problem !== undefined) {
      response.shouldKeepAlive = false;
      refuse(response, problem);
      return;
    }
    goOn();
    this.#forward(request, response, client);
  }

  /** Why a request may not go out, if so. */
  #problem(request: IncomingMessage, { connection }: Client): Problem | undefined {
    const { host, port } = connection;
    const { method = "", url = "" } = request;
    const wrong = (sentence: string, status = 400): Problem => {
      this.#options.onRefused(connection, sentence, host);
      return { status, sentence };
    };
    const hosts = valuesOf(request, "host");
    if (hosts.length !== 1) return wrong("a request names exactly one host");
    const named = hosts[0]!.toLowerCase();
    if (named !== host && named !== `${host}:${port}`) {
      const name = normalHost(named.replace(/:\d{1,5}$/, ""));
      if (name === undefined || name === host) return wrong("the request names its host in an odd way");
      const isListed = this.#options.policy().ruleFor(name, port) !== undefined;
      const sentence = isListed ? `this connection is one to ${host}, not to ${name}` : refusal(name, port);
      this.#options.onRefused(connection, sentence, name);
      return { status: isListed ? 421 : 403, sentence };
    }
    if (!url.startsWith("/")) return wrong("the target of a request is a path");
    if (NEVER.has(method)) return wrong(`${method} is refused by this sandbox's network`, 403);
    const codings = valuesOf(request, "transfer-encoding");
    const lengths = valuesOf(request, "content-length");
    const isChunked = codings.length === 1 && codings[0]!.toLowerCase() === "chunked";
    if (codings.length + lengths.length > 1 || (codings.length === 1 && !isChunked)) {
      return wrong("the length of the request's body is not told in one way");
    }
    if (this.#options.policy().allows(host, port, method, url)) return undefined;
    const isListed = this.#options.policy().ruleFor(host, port) !== undefined;
    const path = url.split("?", 1)[0]!.slice(0, 200);
    const sentence = `${method} ${path} of ${host} is not on this sandbox's list; ask your user for it`;
    return wrong(isListed ? sentence : refusal(host, port), 403);
  }

  #forward(request: IncomingMessage, response: ServerResponse, client: Client, isRetry = false): void {
    const outgoing = startRequest({
      ...{ method: request.method, path: request.url, agent: client.agent, setHost: false, setDefaultHeaders: false },
      headers: ["Host", client.connection.host, ...passedOn(request), ...framing(request)],
    });
    const hasBody = framing(request).length > 0;
    outgoing.on("response", (incoming) => answerWith(incoming, response));
    outgoing.on("error", (error) => {
      if (response.headersSent) return void response.destroy();
      // A connection that was kept may end just when it is used again.
      if (outgoing.reusedSocket && !hasBody && SAFE.has(request.method!) && !isRetry)
        return void this.#forward(request, response, client, true);
      this.#fail(response, client, error);
    });
    outgoing.on("close", () => {
      request.unpipe(outgoing);
      request.resume();
    });
    response.once("close", () => outgoing.destroy());
    if (hasBody) request.pipe(outgoing);
    else outgoing.end();
  }

  #fail(response: ServerResponse, { connection }: Client, error: Error): void {
    const isRefused = error instanceof DialError && error.isRefused;
    const sentence = error instanceof DialError ? error.message : `${connection.host} broke the connection off`;
    if (isRefused) this.#options.onRefused(connection, sentence, connection.host);
    refuse(response, { status: isRefused ? 403 : 502, sentence });
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const client = this.#admit(request);
    if (client === undefined) return void socket.destroy();
    const response = new ServerResponse(request);
    response.assignSocket(socket);
    response.shouldKeepAlive = false;
    response.sendDate = false;
    response.once("finish", () => socket.destroySoon());
    socket.on("error", () => {});
    const problem = this.#problem(request, client);
    if (problem !== undefined || !isWebSocket(request) || client.ahead > 1) {
      refuse(response, problem ?? { status: 400, sentence: "a request is upgraded to WebSocket alone, and by itself" });
      return;
    }
    const outgoing: ClientRequest = startRequest({
      ...{ method: "GET", path: request.url, agent: client.agent, setHost: false, setDefaultHeaders: false },
      headers: [
        ...["Host", client.connection.host, ...passedOn(request)],
        ...["Connection", "Upgrade", "Upgrade", "websocket"],
      ],
    });
    outgoing.on("response", (incoming) => answerWith(incoming, response));
    outgoing.on("error", (error) => {
      if (response.headersSent) response.destroy();
      else this.#fail(response, client, error);
    });
    outgoing.on("upgrade", (incoming, upstream, upstreamHead) => {
      response.detachSocket(socket);
      if (!isWebSocket(incoming)) return void socket.destroy();
      const lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"];
      socket.write(
        `${[...lines, ...pairs(passedOn(incoming)).map(([name, value]) => `${name}: ${value}`)].join("\r\n")}\r\n\r\n`,
        "latin1",
      );
      socket.write(upstreamHead);
      upstream.write(head);
      join(socket, upstream as Socket);
    });
    client.connection.signal.addEventListener("abort", () => outgoing.destroy());
    outgoing.end();
  }

  /** CONNECT, for which there is no answer object. */
  #refuseRaw(request: IncomingMessage, socket: Socket): void {
    const client = this.#clients.get(request.socket);
    const sentence = "this sandbox's network is no proxy; connect to the host itself";
    if (client !== undefined) this.#options.onRefused(client.connection, sentence, client.connection.host);
    socket.on("error", () => {}).end(rawAnswer(403, sentence));
  }
}

interface Problem {
  readonly status: number;
  readonly sentence: string;
}

/** TRACE sends back what it was sent, with what others put in on the way. */
const NEVER: ReadonlySet<string> = new Set(["TRACE", "CONNECT"]);

/** What may be sent a second time (RFC 9110, 9.2.1). */
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** What concerns one connection and not the request (RFC 9110, 7.6.1), and what we say ourselves. */
const OURS: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate", "te", "trailer"],
  ...["transfer-encoding", "content-length", "upgrade", "http2-settings", "expect", "host"],
]);

/** A message's own headers, names and values in turn. */
function passedOn(message: IncomingMessage): string[] {
  const named = valuesOf(message, "connection").flatMap((value) =>
    value
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  );
  const dropped = new Set([...OURS, ...named]);
  return pairs(message.rawHeaders)
    .filter(([name]) => !dropped.has(name.toLowerCase()))
    .flat();
}

/** How the length of a body is told; nothing where there is none. */
function framing(message: IncomingMessage): string[] {
  const [length] = valuesOf(message, "content-length");
  if (length !== undefined) return ["Content-Length", length];
  return valuesOf(message, "transfer-encoding").length > 0 ? ["Transfer-Encoding", "chunked"] : [];
}

function answerWith(incoming: IncomingMessage, response: ServerResponse): void {
  const [length] = valuesOf(incoming, "content-length");
  try {
    const headers = [...passedOn(incoming), ...(length === undefined ? [] : ["Content-Length", length])];
    response.writeHead(incoming.statusCode!, incoming.statusMessage, headers);
  } catch {
    incoming.destroy();
    return void refuse(response, { status: 502, sentence: "the host's answer is malformed" });
  }
  // So that an answer that comes in pieces, as events do, begins when it begins.
  response.flushHeaders();
  incoming.on("error", () => response.destroy());
  incoming.pipe(response);
}

function refuse(response: ServerResponse, { status, sentence }: Problem): void {
  const body = Buffer.from(`${sentence}\n`);
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", "Content-Length": body.length });
  response.end(body);
}

function rawAnswer(status: number, sentence: string): string {
  const body = `${sentence}\n`;
  const head = [
    `HTTP/1.1 ${status} Refused`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return `${[...head, "Connection: close"].join("\r\n")}\r\n\r\n${body}`;
}

function isWebSocket(message: IncomingMessage): boolean {
  const wanted = valuesOf(message, "upgrade");
  return wanted.length === 1 && wanted[0]!.toLowerCase() === "websocket" && (message.method ?? "GET") === "GET";
}

function valuesOf(message: IncomingMessage, header: string): string[] {
  return pairs(message.rawHeaders).flatMap(([name, value]) => (name.toLowerCase() === header ? [value.trim()] : []));
}

function pairs(headers: readonly string[]): [name: string, value: string][] {
  return Array.from({ length: headers.length / 2 }, (_, index) => [headers[2 * index]!, headers[2 * index + 1]!]);
}
