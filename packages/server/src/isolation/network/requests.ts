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
import { join } from "./connection.ts";
import { DialError } from "./dial.ts";
import { FramedReplacer, WEBSOCKET_FRAMES } from "./framed-replacer.ts";
import {
  authorityOf,
  BETWEEN_REQUESTS_MS,
  decoded,
  decoderOf,
  HEAD_WITHIN_MS,
  isOfConnection,
  isUnmaskable,
  MOST_HEADER_BYTES,
  passOn,
  type ReadConnection,
  type Refusal,
  refusalOf,
  secretNews,
} from "./request-rules.ts";
import type { RequestHead, ResponseMask } from "./secrets.ts";

/** One without TLS, or with TLS that was opened. */
export interface RequestConnection extends ReadConnection {
  /** A connection to the host, with TLS where the box's has it; rejects with a DialError. */
  connect(): Promise<Socket>;
}

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
  readonly #news: ReturnType<typeof secretNews>;
  #timer: NodeJS.Timeout | undefined;
  #active = 0;
  #turn: Promise<void> = Promise.resolve();
  #hasAnswered = false;
  /** The latest that had its turn. */
  #response: ServerResponse | undefined;

  constructor(socket: Socket, connection: RequestConnection) {
    const { host, isSecure, secrets } = connection;
    this.#socket = socket;
    this.#connection = connection;
    this.#mask = isSecure ? secrets.outOf(host) : undefined;
    this.#news = secretNews(connection);
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
    const fields = fieldsOf(request);
    if (!this.#admit(request, fields, response)) return;
    goOn();
    const length = framing(fields);
    const isRepeatable = this.#hasAnswered && SAFE.has(request.method!) && length.length === 0;
    this.#forward({ request, fields, length }, response, isRepeatable);
  }

  #forward({ request, fields, length }: ReadRequest, response: ServerResponse, isRepeatable: boolean): void {
    const upstream = this.#open(request, fields, response, length);
    if (upstream === undefined) return;
    upstream.on("error", (error) => {
      // A connection that was kept may end just when it is used again.
      const isRepeated = isRepeatable && !response.headersSent && !(error instanceof DialError);
      if (isRepeated) this.#forward({ request, fields, length }, response, false);
      else this.#fail(response, error);
    });
    if (length.length === 0) {
      request.resume();
      upstream.end();
      return;
    }
    const { secrets, isSecure, host } = this.#connection;
    const replacer = secrets.intoBody(isSecure ? host : undefined, this.#news.misplaced, this.#news.used);
    passOn(request, upstream, { replacer });
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
    const fields = fieldsOf(request);
    if (!this.#admit(request, fields, response)) return;
    const upstream = this.#open(request, fields, response, UPGRADE);
    upstream?.on("error", (error) => this.#fail(response, error));
    upstream?.once("upgrade", (answer, other, first) => {
      response.detachSocket(socket);
      if (!isWebSocket(answer)) {
        other.destroy();
        return void socket.destroy();
      }
      const lines = [...UPGRADE, ...this.#masked(passedOn(fieldsOf(answer)))].map(
        ([name, value]) => `${name}: ${value}`,
      );
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
  #admit(request: IncomingMessage, fields: Fields, response: ServerResponse): boolean {
    // What comes behind the last answer is no request.
    if (!this.#socket.writable) return false;
    this.#response = response;
    response.sendDate = false;
    const destination = { hosts: valuesOf(fields, "host"), method: request.method!, target: request.url! };
    const refused = oddLength(fields) ?? refusalOf(this.#connection, destination);
    if (refused === undefined) return true;
    this.#connection.onDenied(refused.sentence, refused.host ?? this.#connection.host);
    refuse(response, refused);
    return false;
  }

  /** The request to the host, its head as it will be sent. */
  #open(request: IncomingMessage, fields: Fields, response: ServerResponse, more: Headers): ClientRequest | undefined {
    const { secrets, isSecure, host } = this.#connection;
    const isMasked = this.#mask !== undefined;
    const kept = passedOn(fields).filter(([name]) => !isMasked || !isUnmaskable(name.toLowerCase()));
    const own: Headers = isMasked ? [...more, ["Accept-Encoding", "identity"]] : more;
    const head = secrets.intoHead(
      { target: request.url!, headers: [["Host", authorityOf(this.#connection)], ...kept, ...own] },
      isSecure ? host : undefined,
      this.#news.misplaced,
      this.#news.used,
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
    upstream.once("response", (answer) => this.#answer(request, answer, response));
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

  #answer(request: IncomingMessage, answer: IncomingMessage, response: ServerResponse): void {
    const mask = this.#mask;
    const fields = fieldsOf(answer);
    this.#hasAnswered = true;
    const encoding = answer.headers["content-encoding"] ?? "identity";
    const hasBody = request.method !== "HEAD" && answer.statusCode !== 204 && answer.statusCode !== 304;
    const isDecoded = mask !== undefined && hasBody && encoding.toLowerCase() !== "identity";
    const decoder = isDecoded ? decoderOf(encoding) : undefined;
    if (isDecoded && decoder === undefined) {
      answer.destroy();
      refuse(response, {
        status: 502,
        sentence: `${this.#connection.host} answered in an encoding that cannot be read`,
      });
      return;
    }
    const [length] = valuesOf(fields, "content-length");
    const headers = passedOn(fields).filter(([name]) => !isDecoded || name.toLowerCase() !== "content-encoding");
    if (length !== undefined && !isDecoded) headers.push(["Content-Length", length]);
    try {
      const reason = mask?.text(answer.statusMessage!) ?? answer.statusMessage;
      response.writeHead(answer.statusCode!, reason, this.#masked(headers).flat());
    } catch {
      answer.destroy();
      return void refuse(response, { status: 502, sentence: "the host's answer is malformed" });
    }
    passOn(decoder === undefined ? answer : decoded(answer, decoder), response, { replacer: mask?.stream() });
  }

  #masked(headers: Headers): Headers {
    const mask = this.#mask;
    return mask === undefined ? headers : headers.map(([name, value]) => [mask.text(name), mask.text(value)] as const);
  }

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

/** A request that was looked at. */
interface ReadRequest {
  readonly request: IncomingMessage;
  readonly fields: Fields;
  /** How the length of its body is told; nothing where there is none. */
  readonly length: Headers;
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

/** The headers of a message, in their order. */
type Fields = readonly { readonly name: string; readonly lower: string; readonly value: string }[];

function fieldsOf({ rawHeaders }: IncomingMessage): Fields {
  const fields: Fields[number][] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    fields.push({ name, lower: name.toLowerCase(), value: rawHeaders[at + 1]! });
  }
  return fields;
}

function valuesOf(fields: Fields, header: string): string[] {
  return fields.filter(({ lower }) => lower === header).map(({ value }) => value.trim());
}

/** A message's own headers. */
function passedOn(fields: Fields): [name: string, value: string][] {
  const named = valuesOf(fields, "connection").flatMap((value) => value.toLowerCase().split(/[\s,]+/));
  return fields
    .filter(({ lower }) => !isOfConnection(lower) && !named.includes(lower))
    .map(({ name, value }) => [name, value]);
}

function oddLength(fields: Fields): Refusal | undefined {
  const codings = valuesOf(fields, "transfer-encoding");
  const lengths = valuesOf(fields, "content-length");
  const isPlain = codings.length + lengths.length <= 1 && codings.every((coding) => coding.toLowerCase() === "chunked");
  return isPlain ? undefined : { status: 400, sentence: "the length of the request's body is not told in one way" };
}

function framing(fields: Fields): Headers {
  const [length] = valuesOf(fields, "content-length");
  if (length !== undefined) return [["Content-Length", length]];
  return valuesOf(fields, "transfer-encoding").length > 0 ? [["Transfer-Encoding", "chunked"]] : [];
}

function isWebSocket(message: IncomingMessage): boolean {
  const [wanted, ...others] = valuesOf(fieldsOf(message), "upgrade");
  return wanted?.toLowerCase() === "websocket" && others.length === 0 && (message.method ?? "GET") === "GET";
}

/** What a host sends through a WebSocket. */
function maskedFrames(mask: ResponseMask): Transform {
  const replacer = new FramedReplacer(WEBSOCKET_FRAMES, () => mask.stream());
  return new Transform({ transform: (chunk: Buffer, _encoding, done) => done(null, replacer.push(chunk)) });
}
