import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type Http2Stream,
  type OutgoingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from "node:http2";
import type { TLSSocket } from "node:tls";
import { DialError } from "./dial.ts";
import { FramedReplacer, GRPC_MESSAGES } from "./framed-replacer.ts";
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

const MOST_STREAMS = 64;

/** A connection that was opened and on which HTTP/2 is spoken. */
export interface StreamConnection extends ReadConnection {
  /** The same to the host; rejects with a DialError. */
  connect(): Promise<TLSSocket>;
}

/**
 * Reads requests of HTTP/2, for clients that speak nothing else: those of gRPC. Each stream is a request that is looked at by itself and
 * written anew, over one connection to the host for each of the box. What is no HTTP/2 ends the connection: Node's reading is strict.
 */
export function readStreams(socket: TLSSocket, connection: StreamConnection): void {
  new Streams(socket, connection);
}

class Streams {
  readonly #connection: StreamConnection;
  readonly #session: ServerHttp2Session;
  readonly #mask: ResponseMask | undefined;
  readonly #news: ReturnType<typeof secretNews>;
  #upstream: Promise<ClientHttp2Session> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #active = 0;

  constructor(socket: TLSSocket, connection: StreamConnection) {
    this.#connection = connection;
    this.#mask = connection.secrets.outOf(connection.host);
    this.#news = secretNews(connection);
    // Node says so of sockets of its own servers only, and HTTP/2 would wait for it.
    Object.assign(socket, { secureConnecting: false });
    const session = performServerHandshake(socket, {
      settings: {
        maxConcurrentStreams: MOST_STREAMS,
        maxHeaderListSize: MOST_HEADER_BYTES,
        enableConnectProtocol: false,
      },
    });
    this.#session = session;
    session.on("stream", (stream, _headers, _flags, raw) => {
      this.#begin(stream);
      connection.share.run(() => {
        if (!stream.destroyed) this.#serve(stream, fieldsOf(raw as unknown as readonly string[]));
      });
    });
    session.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code?.startsWith("ERR_HTTP2")) {
        connection.onDenied("the request cannot be read in one way only", connection.host);
      }
    });
    session.once("close", () => {
      clearTimeout(this.#timer);
      this.#upstream?.then(
        (upstream) => upstream.destroy(),
        () => {},
      );
      socket.destroy();
    });
    this.#await(HEAD_WITHIN_MS);
  }

  #serve(stream: ServerHttp2Stream, fields: Fields): void {
    const { host } = this.#connection;
    const method = pseudo(fields, ":method");
    const target = pseudo(fields, ":path");
    const hosts = [
      ...new Set(fields.filter(([name]) => name === ":authority" || name === "host").map(([, value]) => value)),
    ];
    const refused =
      pseudo(fields, ":scheme") === "https"
        ? refusalOf(this.#connection, { hosts, method, target })
        : { status: 400, sentence: "the request is one for another protocol" };
    if (refused !== undefined) {
      this.#connection.onDenied(refused.sentence, refused.host ?? host);
      return void refuse(stream, fields, refused);
    }
    this.#upstream ??= this.#connect();
    this.#upstream.then(
      (upstream) => {
        if (!stream.destroyed) this.#forward(stream, upstream, method, target, fields);
      },
      (error: Error) => {
        const dialling = error instanceof DialError ? error : undefined;
        const sentence = dialling?.message ?? `${host} broke the connection off`;
        if (dialling?.isRefused) this.#connection.onDenied(sentence, host);
        refuse(stream, fields, { status: dialling?.isRefused ? 403 : 502, sentence });
      },
    );
  }

  /** Its end is the end of the box's: a program that finds its connection closed makes another one. */
  async #connect(): Promise<ClientHttp2Session> {
    const socket = await this.#connection.connect();
    const session = connect(`https://${authorityOf(this.#connection)}`, {
      createConnection: () => socket,
      settings: { enablePush: false, maxHeaderListSize: 4 * MOST_HEADER_BYTES },
    });
    session.on("error", () => {});
    session.once("goaway", () => this.#session.close());
    session.once("close", () => this.#session.close());
    return session;
  }

  #forward(
    stream: ServerHttp2Stream,
    upstream: ClientHttp2Session,
    method: string,
    target: string,
    fields: Fields,
  ): void {
    const { secrets, host } = this.#connection;
    if (upstream.closed || upstream.destroyed) {
      return void refuse(stream, fields, { status: 502, sentence: `${host} broke the connection off` });
    }
    const head = this.#head(target, fields);
    const hasBody = !stream.endAfterHeaders;
    const broken = `${host} broke the connection off`;
    // A request that was closed in the other way would end first, and look whole.
    const leaving = new AbortController();
    let request: ClientHttp2Stream;
    try {
      const own = { ":method": method, ":scheme": "https", ":authority": authorityOf(this.#connection) };
      request = upstream.request(
        { ...own, ":path": head.target, ...objectOf(head.headers), [sensitiveHeaders]: changedNames(head, fields) },
        { endStream: !hasBody, signal: leaving.signal },
      );
    } catch {
      return void refuse(stream, fields, { status: 400, sentence: "the request has headers that cannot be sent" });
    }
    request.on("error", () => {}); // that it closes is seen
    request.once("response", (_headers, flags, raw) => {
      const isAll = hasEnded(flags) || method === "HEAD";
      this.#answer({ stream, request, asked: fields }, fieldsOf(raw as unknown as readonly string[]), isAll);
    });
    request.once("close", () => {
      if (!stream.headersSent) refuse(stream, fields, { status: 502, sentence: broken });
      else if (!isWhole(request)) stream.destroy(new Error(broken));
    });
    stream.once("close", () => leaving.abort());
    if (hasBody) {
      const replacer = secrets.intoBody(host, this.#news.misplaced, this.#news.used);
      passOn(stream, request, { replacer, abort: () => leaving.abort(), isWhole: () => isWhole(stream) });
    } else stream.resume();
  }

  /** As it goes to the host, with values in their places. */
  #head(target: string, fields: Fields): RequestHead {
    const isMasked = this.#mask !== undefined;
    const kept = fields.filter(
      ([name, value]) =>
        !name.startsWith(":") &&
        (!isOfConnection(name) || name === "content-length" || (name === "te" && value === "trailers")) &&
        !(isMasked && (isUnmaskable(name) || name === "grpc-accept-encoding")),
    );
    const own = isMasked ? [["accept-encoding", "identity"] as const] : [];
    const { host, secrets } = this.#connection;
    return secrets.intoHead({ target, headers: [...kept, ...own] }, host, this.#news.misplaced, this.#news.used);
  }

  #answer({ stream, request, asked }: Exchange, fields: Fields, hasNoContent: boolean): void {
    if (stream.destroyed) return;
    const mask = this.#mask;
    const encoding = pseudo(fields, "content-encoding") || "identity";
    const isGrpc = pseudo(fields, "content-type").startsWith("application/grpc");
    const isPacked = mask !== undefined && !hasNoContent && encoding.toLowerCase() !== "identity";
    const decoder = isPacked ? decoderOf(encoding) : undefined;
    const packedMessages = mask !== undefined && isGrpc && !["", "identity"].includes(pseudo(fields, "grpc-encoding"));
    if ((isPacked && decoder === undefined) || packedMessages) {
      const sentence = `${this.#connection.host} answered in an encoding that cannot be read`;
      refuse(stream, asked, { status: 502, sentence });
      return void request.destroy();
    }
    const dropped = isPacked ? ["content-encoding", "content-length"] : [];
    const kept = fields.filter(([name]) => !isOfConnection(name) || name === "content-length");
    const headers = this.#masked(kept.filter(([name]) => !dropped.includes(name)));
    try {
      stream.respond(objectOf(headers), { endStream: hasNoContent, waitForTrailers: !hasNoContent });
    } catch (error) {
      return void stream.destroy(error as Error);
    }
    if (hasNoContent) return void request.resume();
    let trailers: Fields = [];
    request.once("trailers", (_headers, _flags, raw) => {
      trailers = this.#masked(fieldsOf(raw as unknown as readonly string[]));
    });
    stream.once("wantTrailers", () => stream.sendTrailers(objectOf(trailers)));
    const replacer =
      isGrpc && mask !== undefined ? new FramedReplacer(GRPC_MESSAGES, () => mask.stream()) : mask?.stream();
    const abort = (): void => void stream.destroy(new Error("the answer broke off"));
    const content = decoder === undefined ? request : decoded(request, decoder);
    passOn(content, stream, { replacer, abort, isWhole: () => isWhole(request) });
  }

  #masked(fields: Fields): Fields {
    const mask = this.#mask;
    return mask === undefined ? fields : fields.map(([name, value]) => [mask.text(name), mask.text(value)] as const);
  }

  #begin(stream: ServerHttp2Stream): void {
    this.#connection.onRequest?.();
    this.#active += 1;
    clearTimeout(this.#timer);
    stream.on("error", () => {}); // that it closes is seen
    stream.once("close", () => {
      this.#active -= 1;
      if (this.#active === 0 && !this.#session.destroyed) this.#await(BETWEEN_REQUESTS_MS);
    });
  }

  #await(ms: number): void {
    this.#timer = setTimeout(() => this.#session.destroy(), ms).unref();
  }
}

interface Exchange {
  readonly stream: ServerHttp2Stream;
  readonly request: ClientHttp2Stream;
  /** What the box asked. */
  readonly asked: Fields;
}

/** Names, all in small letters, and values, in their order; those that begin with a colon are HTTP/2's own. */
type Fields = RequestHead["headers"];

function fieldsOf(raw: readonly string[]): Fields {
  return raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1]!] as const] : []));
}

/** "" where it is not there. */
function pseudo(fields: Fields, wanted: string): string {
  return fields.find(([name]) => name === wanted)?.[1] ?? "";
}

/** As Node takes them; what there may be once only and is there twice it refuses. */
function objectOf(fields: Fields): OutgoingHttpHeaders {
  const headers: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of fields) {
    const known = headers[name];
    headers[name] = known === undefined ? value : [...[known].flat(), value];
  }
  return headers;
}

/** Headers with a value in them: no table of the connection's is to remember them. */
function changedNames({ headers }: RequestHead, before: Fields): string[] {
  const known = new Set(before.map(([name, value]) => `${name}:${value}`));
  return headers.filter(([name, value]) => !known.has(`${name}:${value}`)).map(([name]) => name);
}

/** One that was reset ends as well. */
function isWhole(stream: Http2Stream): boolean {
  return stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted;
}

function hasEnded(flags: number): boolean {
  return (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
}

/** What gRPC calls a call that is not allowed, one that is wrong, and a host that is not there. */
const GRPC_STATUS: Readonly<Record<number, number>> = { 400: 3, 403: 7, 421: 7, 502: 14 };

/** In the words of whoever asks. */
function refuse(stream: ServerHttp2Stream, asked: Fields, { status, sentence }: Refusal): void {
  if (stream.destroyed || stream.headersSent) return;
  const contentType = pseudo(asked, "content-type");
  if (contentType.startsWith("application/grpc")) {
    const grpc = {
      "grpc-status": String(GRPC_STATUS[status] ?? 2),
      "grpc-message": sentence.replace(/[^ -$&-~]/g, encodeURIComponent),
    };
    stream.respond({ ":status": 200, "content-type": "application/grpc", ...grpc }, { endStream: true });
  } else {
    stream.respond({ ":status": status, "content-type": "text/plain; charset=utf-8" });
    stream.end(`${sentence}\n`);
  }
  stream.resume(); // what else it sends
}
