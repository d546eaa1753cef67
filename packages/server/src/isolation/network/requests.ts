import {
  Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as openRequest,
  type Server,
  ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { Socket } from "node:net";
import { type Duplex, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import type { RequestHead, ResponseMask, SecretRule, SecretSet } from "./secrets.ts";
import { placeText } from "./secrets.ts";
import type { StreamReplacer } from "./stream-replacer.ts";
import { maskedFrames } from "./websocket.ts";

/** A connection from a box whose requests can be read: without TLS, or with TLS that was opened. */
export interface RequestConnection {
  /** The name that the box connected to: all requests are for it. */
  readonly host: string;
  readonly port: number;
  /** Secrets are put in only on the way through TLS, and masked on the way back. */
  readonly isSecure: boolean;
  readonly secrets: SecretSet;
  /** Whether the list, as it is now, lets a request through. The target is as in the request line. */
  allows(method: string, target: string): boolean;
  /** A connection to the host, with TLS where the box's has it; rejects with what may be told. */
  connect(): Promise<Duplex>;
  /** A request has come. */
  onRequest?(): void;
  onDenied(sentence: string): void;
  onMisplaced(sentence: string): void;
}

const MOST_HEADER_BYTES = 16 * 1024;
/** For a whole head, counted from the connection or from the end of the response before it. */
const HEAD_WITHIN_MS = 60_000;

/**
 * Reads the requests of boxes, one strict reading for all of them, and passes on those that are allowed. Each one is checked by
 * itself, whatever the connection was used for before. It listens nowhere: connections are handed to it.
 */
export class RequestReader {
  readonly #server: Server;
  readonly #exchanges = new WeakMap<object, Exchanges>();

  constructor() {
    this.#server = createServer({
      maxHeaderSize: MOST_HEADER_BYTES,
      insecureHTTPParser: false,
      requireHostHeader: false, // that is looked at with the rest
      // Whoever asks for another protocol than this one gets the answer of the one it asked in.
      shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === "websocket",
    });
    this.#server.keepAliveTimeout = 0; // each connection has its own time for the next head
    this.#server.on("request", (request, response) => this.#of(request.socket).serve(request, response));
    this.#server.on("checkContinue", (request, response) => this.#of(request.socket).serve(request, response));
    this.#server.on("upgrade", (request, socket, head) => this.#of(socket).upgrade(request, socket, head));
    this.#server.on("connect", (_request, socket) =>
      this.#of(socket).refuseRaw(405, "CONNECT is not for this network"),
    );
    this.#server.on("clientError", (_error, socket) =>
      this.#of(socket).refuseRaw(400, "the request cannot be read in one way only"),
    );
  }

  /** From now on the connection is this one's; it ends when either side does. */
  accept(socket: Socket, connection: RequestConnection): void {
    this.#exchanges.set(socket, new Exchanges(socket, connection));
    this.#server.emit("connection", socket);
  }

  #of(socket: object): Exchanges {
    return this.#exchanges.get(socket)!;
  }
}

/** What happens on one connection of a box. */
class Exchanges {
  readonly #socket: Socket;
  readonly #connection: RequestConnection;
  /** One connection to the host, used for one request after the other. */
  readonly #agent: Agent;
  /** Where values were put in, they may come back. */
  readonly #mask: ResponseMask | undefined;
  #timer: NodeJS.Timeout | undefined;
  #active = 0;
  #turn: Promise<void> = Promise.resolve();

  constructor(socket: Socket, connection: RequestConnection) {
    this.#socket = socket;
    this.#connection = connection;
    this.#mask = connection.isSecure ? connection.secrets.outOf(connection.host) : undefined;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1 });
    this.#agent.createConnection = (_options, callback) => {
      connection.connect().then(
        (upstream) => {
          // A program that finds its connection closed makes another one; it must not send into a dead one behind us.
          upstream.once("close", () => {
            if (this.#active === 0) socket.end();
          });
          callback?.(null, upstream);
        },
        (error: Error) => callback?.(error, undefined as never),
      );
      return undefined;
    };
    this.#await();
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      clearTimeout(this.#timer);
      this.#agent.destroy();
    });
  }

  /** Requests that come before the response to an earlier one take turns: the host gets them one by one. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    this.#begin();
    const before = this.#turn;
    this.#turn = new Promise((resolve) => {
      response.once("close", () => {
        this.#end();
        resolve();
      });
    });
    void before.then(() => {
      if (!response.destroyed) this.#serve(request, response);
    });
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    response.sendDate = false;
    const refusal = this.#refusal(request);
    if (refusal !== undefined) {
      this.#connection.onDenied(refusal.sentence);
      refuse(response, refusal);
      return;
    }
    if (request.headers.expect !== undefined) response.writeContinue();
    const upstream = this.#open(request, response, false);
    if (upstream === undefined) return;
    upstream.once("response", (answer) => void this.#answer(request, answer, response));
    this.#send(request, upstream, response);
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#begin();
    socket.once("close", () => this.#end());
    const response = new ServerResponse(request);
    response.assignSocket(socket as Socket);
    response.sendDate = false;
    response.shouldKeepAlive = false;
    response.once("finish", () => socket.end());
    const refusal = this.#refusal(request);
    if (refusal !== undefined) {
      this.#connection.onDenied(refusal.sentence);
      refuse(response, refusal);
      return;
    }
    const upstream = this.#open(request, response, true);
    if (upstream === undefined) return;
    upstream.once("response", (answer) => void this.#answer(request, answer, response));
    upstream.once("upgrade", (answer, other, first) => {
      response.detachSocket(socket as Socket);
      const lines = pairs(answer.rawHeaders).map(([name, value]) => `${name}: ${this.#mask?.text(value) ?? value}`);
      socket.write(["HTTP/1.1 101 Switching Protocols", ...lines, "", ""].join("\r\n"), "latin1");
      if (head.length > 0) other.write(head);
      if (first.length > 0) other.unshift(first);
      const back = this.#mask === undefined ? other : other.pipe(maskedFrames(this.#mask));
      socket.pipe(other);
      back.pipe(socket);
      socket.once("close", () => other.destroy());
      for (const stream of [other, back]) stream.once("error", () => socket.destroy());
      other.once("close", () => {
        if (!other.readableEnded) socket.destroy();
      });
    });
    upstream.end();
  }

  refuseRaw(status: number, sentence: string): void {
    this.#connection.onDenied(sentence);
    if (!this.#socket.writable) return void this.#socket.destroy();
    const text = `${sentence}\n`;
    const headers = `content-type: text/plain\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close`;
    this.#socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers}\r\n\r\n${text}`);
  }

  /** Why a request does not go on. */
  #refusal(request: IncomingMessage): Refusal | undefined {
    const { host, port } = this.#connection;
    const method = request.method!;
    const target = request.url!;
    const hosts = pairs(request.rawHeaders).filter(([name]) => name.toLowerCase() === "host");
    if (method === "TRACE") return { status: 405, sentence: "TRACE is not for this network" };
    if (!/^\/[\x21-\x7e]*$/.test(target)) {
      return { status: 400, sentence: "the request's target must be a path; no proxy is here" };
    }
    if (hosts.length !== 1) return { status: 400, sentence: "the request needs one Host, and has none or several" };
    const [, named] = hosts[0]!;
    const isUsualPort = port === (this.#connection.isSecure ? 443 : 80);
    const known = [`${host}:${port}`, ...(isUsualPort ? [host] : [])];
    if (!known.includes(named.toLowerCase())) {
      return { status: 421, sentence: `this connection is for ${host}; the request names another host` };
    }
    if (request.headers["transfer-encoding"] !== undefined && request.headers["transfer-encoding"] !== "chunked") {
      return { status: 400, sentence: "of transfer encodings this network knows chunked alone" };
    }
    if (this.#connection.allows(method, target)) return undefined;
    const path = target.split("?", 1)[0]!.slice(0, 200);
    return {
      status: 403,
      sentence: `${method} ${path} at ${host} is not on this sandbox's list; ask your user for it`,
    };
  }

  /** The request to the host, its head as it will be sent. */
  #open(request: IncomingMessage, response: ServerResponse, isUpgrade: boolean): ClientRequest | undefined {
    const { secrets, isSecure, host } = this.#connection;
    const head = secrets.intoHead(
      { target: request.url!, headers: this.#headers(request, isUpgrade) },
      isSecure ? host : undefined,
      this.#misplaced,
    );
    let upstream: ClientRequest;
    try {
      upstream = openRequest({
        agent: this.#agent,
        method: request.method!,
        path: head.target,
        headers: head.headers.flat(),
        maxHeaderSize: 4 * MOST_HEADER_BYTES,
      });
    } catch {
      refuse(response, { status: 400, sentence: "the request has characters that no header can have" });
      return undefined;
    }
    upstream.once("error", (error) => {
      if (response.headersSent) response.destroy();
      else refuse(response, { status: 502, sentence: `${host} cannot be reached: ${error.message}` });
    });
    response.once("close", () => {
      if (!response.writableFinished) upstream.destroy();
    });
    return upstream;
  }

  #headers(request: IncomingMessage, isUpgrade: boolean): RequestHead["headers"] {
    const dropped = new Set([...HOP_BY_HOP, "expect", ...namedBy(request)]);
    if (this.#mask !== undefined) for (const name of UNMASKABLE) dropped.add(name);
    const kept = pairs(request.rawHeaders).filter(([name]) => !dropped.has(name.toLowerCase()));
    if (isUpgrade) kept.push(["Connection", "Upgrade"], ["Upgrade", "websocket"]);
    else if (request.headers["transfer-encoding"] !== undefined) kept.push(["Transfer-Encoding", "chunked"]);
    else if (request.headers["content-length"] === undefined && BODY_EXPECTED.has(request.method!)) {
      kept.push(["Content-Length", "0"]);
    }
    if (this.#mask !== undefined) kept.push(["Accept-Encoding", "identity"]);
    return kept;
  }

  #send(request: IncomingMessage, upstream: ClientRequest, response: ServerResponse): void {
    const { secrets, isSecure, host } = this.#connection;
    const replacer = secrets.intoBody(isSecure ? host : undefined, this.#misplaced);
    // A host may answer and close before it has read everything; what it said is passed on all the same.
    pipeline([request, ...replacing(replacer), upstream]).catch(() => {
      if (request.destroyed && !request.complete) response.destroy();
    });
  }

  async #answer(request: IncomingMessage, answer: IncomingMessage, response: ServerResponse): Promise<void> {
    const mask = this.#mask;
    const encoding = answer.headers["content-encoding"]?.toLowerCase() ?? "identity";
    const hasBody = request.method !== "HEAD" && answer.statusCode !== 204 && answer.statusCode !== 304;
    const decode = mask === undefined || encoding === "identity" || !hasBody ? undefined : DECODERS[encoding];
    if (mask !== undefined && hasBody && encoding !== "identity" && decode === undefined) {
      answer.destroy();
      refuse(response, {
        status: 502,
        sentence: `${this.#connection.host} answered in an encoding that cannot be read`,
      });
      return;
    }
    const dropped = new Set([...HOP_BY_HOP, ...namedBy(answer)]);
    if (decode !== undefined) for (const name of ["content-encoding", "content-length"]) dropped.add(name);
    const headers = pairs(answer.rawHeaders)
      .filter(([name]) => !dropped.has(name.toLowerCase()))
      .map(([name, value]) => [mask?.text(name) ?? name, mask?.text(value) ?? value]);
    try {
      response.writeHead(answer.statusCode!, headers.flat());
      response.flushHeaders(); // those who wait for events see that they will come
      await pipeline([answer, ...(decode === undefined ? [] : [decode()]), ...replacing(mask?.stream()), response]);
    } catch {
      response.destroy(); // an end that was none must not look like one
    }
  }

  readonly #misplaced = ({ name, hosts, place }: SecretRule, where: string): void => {
    const { host, isSecure, onMisplaced } = this.#connection;
    const way = isSecure ? "" : " without TLS";
    const rule = `the value goes into ${placeText(place)} of requests to ${hosts.join(", ")} alone`;
    onMisplaced(`the placeholder of ${name} went to ${host}${way} in ${where}; ${rule}`);
  };

  #begin(): void {
    this.#connection.onRequest?.();
    this.#active += 1;
    clearTimeout(this.#timer);
  }

  #end(): void {
    this.#active -= 1;
    if (this.#active === 0) this.#await();
  }

  #await(): void {
    this.#timer = setTimeout(() => this.#socket.destroy(), HEAD_WITHIN_MS).unref();
  }
}

interface Refusal {
  readonly status: number;
  readonly sentence: string;
}

function refuse(response: ServerResponse, { status, sentence }: Refusal): void {
  const text = `${sentence}\n`;
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    connection: "close",
  });
  response.end(text);
}

/** These are for the next on the way and not for the host. */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authorization",
  "proxy-authenticate",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
/** With these a response would come in pieces or packed, and a value in it could not be found. */
const UNMASKABLE = ["accept-encoding", "range", "if-range", "sec-websocket-extensions"];
/** Without a length these would be sent in chunks of none. */
const BODY_EXPECTED = new Set(["POST", "PUT", "PATCH"]);

/** Some hosts pack what they send whatever they were asked for. */
const DECODERS: Readonly<Record<string, (() => Transform) | undefined>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

function pairs(raw: readonly string[]): (readonly [name: string, value: string])[] {
  return raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1]!] as const] : []));
}

function namedBy({ headers }: IncomingMessage): string[] {
  return headers.connection?.toLowerCase().split(/[\s,]+/) ?? [];
}

/** A stage of a pipeline, or none. */
function replacing(replacer: StreamReplacer | undefined): Transform[] {
  if (replacer === undefined) return [];
  return [
    new Transform({
      transform: (chunk: Buffer, _encoding, done) => done(null, replacer.push(chunk)),
      flush: (done) => done(null, replacer.flush()),
    }),
  ];
}
