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
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { join } from "./connection.ts";
import { DialError } from "./dial.ts";
import { HTTP_PORT, type NetworkPolicy, normalHost, refusal, TLS_PORT } from "./policy.ts";
import type { RequestHead, ResponseMask, SecretRule, SecretSet } from "./secrets.ts";
import { placeText } from "./secrets.ts";
import type { StreamReplacer } from "./stream-replacer.ts";
import type { TurnShare } from "./turn-share.ts";
import { maskedFrames } from "./websocket.ts";

/** A connection from a box whose requests can be read: without TLS, or with TLS that was opened. */
export interface RequestConnection {
  /** The name that the box connected to: all requests are for it. */
  readonly host: string;
  readonly port: number;
  /** Secrets are put in only on the way through TLS, and masked on the way back. */
  readonly isSecure: boolean;
  readonly secrets: SecretSet;
  readonly share: TurnShare;
  /** As it is now. */
  policy(): NetworkPolicy;
  /** A connection to the host, with TLS where the box's has it; rejects with a DialError. */
  connect(): Promise<Socket>;
  /** A request has come. */
  onRequest?(): void;
  /** The host is the one that the request was for. */
  onDenied(sentence: string, host: string): void;
  onMisplaced(sentence: string): void;
  /** The value of the secret of this name was put in. */
  onSecretUsed?(name: string): void;
}

const MOST_HEADER_BYTES = 16 * 1024;
/** For the first head. */
const HEAD_WITHIN_MS = 5000;
/** From the end of a response to that of the next head. */
const BETWEEN_REQUESTS_MS = 60_000;
/** Requests of one connection that wait for their answers; who sends more ahead is cut off. */
const MOST_AHEAD = 16;

/**
 * Reads the requests of boxes, one strict reading for all of them, and passes on those that are allowed. Each one is checked by
 * itself, whatever the connection was used for before, and written anew from what was read: framing, line ends and order of bytes are
 * ours, not the box's. It listens nowhere: connections are handed to it.
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
      shouldUpgradeCallback: isWebSocket,
    });
    this.#server.keepAliveTimeout = 0; // each connection has its own time for the next head
    this.#server.on("request", (request, response) => this.#of(request.socket).serve(request, response));
    this.#server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) =>
      this.#of(request.socket).serve(request, response, () => response.writeContinue()),
    );
    this.#server.on("upgrade", (request, socket, head) => this.#of(socket).upgrade(request, head));
    this.#server.on("connect", (_request, socket) =>
      this.#of(socket).refuseRaw({
        status: 403,
        sentence: "this sandbox's network is no proxy; connect to the host itself",
      }),
    );
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
      const status = error.code === "HPE_HEADER_OVERFLOW" ? 431 : 400;
      if (error.code === "ECONNRESET") socket.destroy();
      else this.#of(socket).refuseRaw({ status, sentence: "the request cannot be read in one way only" });
    });
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
  /** As programs write it. */
  readonly #name: string;
  #timer: NodeJS.Timeout | undefined;
  #active = 0;
  #turn: Promise<void> = Promise.resolve();
  #hasAnswered = false;
  /** The latest that had its turn. */
  #response: ServerResponse | undefined;

  constructor(socket: Socket, connection: RequestConnection) {
    const { host, port, isSecure, secrets } = connection;
    this.#socket = socket;
    this.#connection = connection;
    this.#mask = isSecure ? secrets.outOf(host) : undefined;
    this.#name = port === (isSecure ? TLS_PORT : HTTP_PORT) ? host : `${host}:${port}`;
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
    this.#await(HEAD_WITHIN_MS);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      clearTimeout(this.#timer);
      this.#agent.destroy();
    });
  }

  /** Requests that come before the response to an earlier one take turns: the host gets them one by one. */
  serve(request: IncomingMessage, response: ServerResponse, goOn = () => {}): void {
    this.#begin();
    const before = this.#turn;
    this.#turn = new Promise((resolve) => {
      response.once("close", () => {
        this.#end();
        resolve();
      });
    });
    void before.then(() => this.#connection.share.run(() => this.#serve(request, response, goOn)));
  }

  #serve(request: IncomingMessage, response: ServerResponse, goOn: () => void): void {
    if (!this.#admit(request, response)) return;
    goOn();
    this.#forward(request, response, this.#hasAnswered && SAFE.has(request.method!) && framing(request).length === 0);
  }

  #forward(request: IncomingMessage, response: ServerResponse, isRepeatable: boolean): void {
    const upstream = this.#open(request, response, framing(request));
    if (upstream === undefined) return;
    upstream.on("error", (error) => {
      // A connection that was kept may end just when it is used again.
      const isRepeated = isRepeatable && !response.headersSent && !(error instanceof DialError);
      if (isRepeated) this.#forward(request, response, false);
      else this.#fail(response, error);
    });
    const { secrets, isSecure, host } = this.#connection;
    const [replacer] = replacing(secrets.intoBody(isSecure ? host : undefined, this.#misplaced, this.#used));
    const body = replacer === undefined ? request : request.pipe(replacer);
    // A host may answer and close before it has read everything; what it said is passed on all the same.
    upstream.once("close", () => void body.unpipe(upstream).resume());
    if (framing(request).length > 0) upstream.flushHeaders(); // the body may be long in coming
    body.pipe(upstream);
  }

  upgrade(request: IncomingMessage, head: Buffer): void {
    const socket = this.#socket;
    this.#begin();
    if (this.#active > 1) return void socket.destroy(); // others wait for their answers here
    socket.once("close", () => this.#end());
    const response = new ServerResponse(request);
    response.assignSocket(socket);
    response.shouldKeepAlive = false;
    response.once("finish", () => socket.destroySoon());
    if (!this.#admit(request, response)) return;
    const upstream = this.#open(request, response, UPGRADE);
    upstream?.on("error", (error) => this.#fail(response, error));
    upstream?.once("upgrade", (answer, other, first) => {
      response.detachSocket(socket);
      if (!isWebSocket(answer)) {
        other.destroy();
        return void socket.destroy();
      }
      const lines = [...UPGRADE, ...this.#masked(passedOn(answer))].map(([name, value]) => `${name}: ${value}`);
      socket.write(["HTTP/1.1 101 Switching Protocols", ...lines, "", ""].join("\r\n"), "latin1");
      if (head.length > 0) other.write(head);
      if (first.length > 0) other.unshift(first);
      join(socket, other as Socket, this.#mask && maskedFrames(this.#mask));
    });
    upstream?.end();
  }

  /** For what is no request, or one without an object to answer it with. */
  refuseRaw({ status, sentence }: Refusal): void {
    this.#connection.onDenied(sentence, this.#connection.host);
    // In the middle of an answer it would look like a part of it.
    if (!this.#socket.writable || (this.#response?.headersSent && !this.#response.writableFinished)) {
      return void this.#socket.destroy();
    }
    const lines = Object.entries(refusalHeaders(sentence)).map(([name, value]) => `${name}: ${value}`);
    const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, "", ""].join("\r\n");
    this.#socket.end(`${head}${sentence}\n`);
  }

  /** Whether a request may go on; otherwise it is answered. */
  #admit(request: IncomingMessage, response: ServerResponse): boolean {
    // What comes behind the last answer is no request.
    if (!this.#socket.writable) return false;
    this.#response = response;
    response.sendDate = false;
    const refused = this.#refusal(request);
    if (refused === undefined) return true;
    this.#connection.onDenied(refused.sentence, refused.host ?? this.#connection.host);
    refuse(response, refused);
    return false;
  }

  /** Why a request does not go on. */
  #refusal(request: IncomingMessage): Refusal | undefined {
    const { host, port } = this.#connection;
    const policy = this.#connection.policy();
    const method = request.method!;
    const target = request.url!;
    const hosts = valuesOf(request, "host");
    if (hosts.length !== 1) return { status: 400, sentence: "a request names exactly one host" };
    const named = hosts[0]!.toLowerCase();
    if (named !== this.#name && named !== `${host}:${port}`) return this.#otherHost(named);
    if (!/^\/[\x21-\x7e]*$/.test(target)) {
      return { status: 400, sentence: "the target of a request is a path; no proxy is here" };
    }
    // It sends back what it was sent, with what others put in on the way.
    if (method === "TRACE") return { status: 403, sentence: "TRACE is refused by this sandbox's network" };
    const codings = valuesOf(request, "transfer-encoding");
    const lengths = valuesOf(request, "content-length");
    if (codings.length + lengths.length > 1 || codings.some((coding) => coding.toLowerCase() !== "chunked")) {
      return { status: 400, sentence: "the length of the request's body is not told in one way" };
    }
    if (policy.allows(host, port, method, target)) return undefined;
    const path = target.split("?", 1)[0]!.slice(0, 200);
    const sentence = `${method} ${path} at ${host} is not on this sandbox's list; ask your user for it`;
    return { status: 403, sentence: policy.ruleFor(host, port) === undefined ? refusal(host, port) : sentence };
  }

  #otherHost(named: string): Refusal {
    const { host, port } = this.#connection;
    const name = normalHost(named.replace(/:\d{1,5}$/, ""));
    if (name === undefined || name === host) {
      return { status: 400, sentence: "the request names its host in an odd way" };
    }
    if (this.#connection.policy().ruleFor(name, port) === undefined) {
      return { status: 403, sentence: refusal(name, port), host: name };
    }
    return { status: 421, sentence: `this connection is one to ${host}, not to ${name}`, host: name };
  }

  /** The request to the host, its head as it will be sent. */
  #open(request: IncomingMessage, response: ServerResponse, more: Headers): ClientRequest | undefined {
    const { secrets, isSecure, host } = this.#connection;
    const isMasked = this.#mask !== undefined;
    const kept = passedOn(request).filter(([name]) => !isMasked || !UNMASKABLE.has(name.toLowerCase()));
    const own: Headers = isMasked ? [...more, ["Accept-Encoding", "identity"]] : more;
    const head = secrets.intoHead(
      { target: request.url!, headers: [["Host", this.#name], ...kept, ...own] },
      isSecure ? host : undefined,
      this.#misplaced,
      this.#used,
    );
    let upstream: ClientRequest;
    try {
      upstream = openRequest({
        ...{ agent: this.#agent, setHost: false, setDefaultHeaders: false, maxHeaderSize: 4 * MOST_HEADER_BYTES },
        ...{ method: request.method!, path: head.target, headers: head.headers.flat() },
      });
    } catch {
      refuse(response, { status: 400, sentence: "the request has characters that no header can have" });
      return undefined;
    }
    upstream.once("response", (answer) => void this.#answer(request, answer, response));
    response.once("close", () => {
      if (!response.writableFinished) upstream.destroy();
    });
    return upstream;
  }

  #fail(response: ServerResponse, error: Error): void {
    const { host, onDenied } = this.#connection;
    const dialling = error instanceof DialError ? error : undefined;
    if (response.headersSent) return void response.destroy();
    const sentence = dialling?.message ?? `${host} broke the connection off`;
    if (dialling?.isRefused) onDenied(sentence, host);
    refuse(response, { status: dialling?.isRefused ? 403 : 502, sentence });
  }

  async #answer(request: IncomingMessage, answer: IncomingMessage, response: ServerResponse): Promise<void> {
    const mask = this.#mask;
    this.#hasAnswered = true;
    const encoding = answer.headers["content-encoding"]?.toLowerCase() ?? "identity";
    const hasBody = request.method !== "HEAD" && answer.statusCode !== 204 && answer.statusCode !== 304;
    const isDecoded = mask !== undefined && hasBody && encoding !== "identity";
    const decode = isDecoded ? DECODERS[encoding] : undefined;
    if (isDecoded && decode === undefined) {
      answer.destroy();
      refuse(response, {
        status: 502,
        sentence: `${this.#connection.host} answered in an encoding that cannot be read`,
      });
      return;
    }
    const [length] = valuesOf(answer, "content-length");
    const headers = passedOn(answer).filter(([name]) => !isDecoded || name.toLowerCase() !== "content-encoding");
    if (length !== undefined && !isDecoded) headers.push(["Content-Length", length]);
    try {
      const reason = mask?.text(answer.statusMessage!) ?? answer.statusMessage;
      response.writeHead(answer.statusCode!, reason, this.#masked(headers).flat());
    } catch {
      answer.destroy();
      return void refuse(response, { status: 502, sentence: "the host's answer is malformed" });
    }
    response.flushHeaders(); // those who wait for events see that they will come
    await pipeline([answer, ...(decode === undefined ? [] : [decode()]), ...replacing(mask?.stream()), response]).catch(
      () => response.destroy(), // an end that was none must not look like one
    );
  }

  #masked(headers: Headers): Headers {
    const mask = this.#mask;
    return mask === undefined ? headers : headers.map(([name, value]) => [mask.text(name), mask.text(value)] as const);
  }

  readonly #used = ({ name }: SecretRule): void => this.#connection.onSecretUsed?.(name);

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
    if (this.#active > MOST_AHEAD) this.#socket.destroy();
  }

  #end(): void {
    this.#active -= 1;
    if (this.#active === 0 && !this.#socket.destroyed) this.#await(BETWEEN_REQUESTS_MS);
  }

  #await(ms: number): void {
    this.#timer = setTimeout(() => this.#socket.destroy(), ms).unref();
  }
}

interface Refusal {
  readonly status: number;
  readonly sentence: string;
  /** Which was asked for, where it is another than the connection's. */
  readonly host?: string;
}

function refuse(response: ServerResponse, { status, sentence }: Refusal): void {
  response.writeHead(status, refusalHeaders(sentence));
  response.end(`${sentence}\n`);
}

function refusalHeaders(sentence: string) {
  return {
    "Content-Type": "text/plain; charset=utf-8",
    "Content-Length": Buffer.byteLength(sentence) + 1,
    Connection: "close",
  };
}

type Headers = RequestHead["headers"];

const UPGRADE: Headers = [
  ["Connection", "Upgrade"],
  ["Upgrade", "websocket"],
];

/** What may be sent a second time (RFC 9110, 9.2.1). */
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** What concerns one connection and not the request (RFC 9110, 7.6.1), and what we say ourselves. */
const OURS: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate", "te", "trailer"],
  ...["transfer-encoding", "content-length", "upgrade", "http2-settings", "expect", "host"],
]);
/** With these a response would come in pieces or packed, and a value in it could not be found. */
const UNMASKABLE: ReadonlySet<string> = new Set([
  ...["accept-encoding", "range", "if-range", "sec-websocket-extensions"],
]);
/** Some hosts pack what they send whatever they were asked for. */
const DECODERS: Readonly<Record<string, (() => Transform) | undefined>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** A message's own headers. */
function passedOn(message: IncomingMessage): [name: string, value: string][] {
  const named = valuesOf(message, "connection").flatMap((value) => value.toLowerCase().split(/[\s,]+/));
  const dropped = new Set([...OURS, ...named]);
  return pairs(message).filter(([name]) => !dropped.has(name.toLowerCase()));
}

/** How the length of a body is told; nothing where there is none. */
function framing(request: IncomingMessage): Headers {
  const [length] = valuesOf(request, "content-length");
  if (length !== undefined) return [["Content-Length", length]];
  return valuesOf(request, "transfer-encoding").length > 0 ? [["Transfer-Encoding", "chunked"]] : [];
}

function isWebSocket(message: IncomingMessage): boolean {
  const [wanted, ...others] = valuesOf(message, "upgrade");
  return wanted?.toLowerCase() === "websocket" && others.length === 0 && (message.method ?? "GET") === "GET";
}

function valuesOf(message: IncomingMessage, header: string): string[] {
  return pairs(message).flatMap(([name, value]) => (name.toLowerCase() === header ? [value.trim()] : []));
}

function pairs({ rawHeaders }: IncomingMessage): [name: string, value: string][] {
  return rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1]!] as [string, string]] : []));
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
