import type { Readable, Transform, Writable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { HTTP_PORT, type NetworkPolicy, normalHost, refusal, TLS_PORT } from "./policy.ts";
import { placeText, type SecretRule, type SecretSet } from "./secrets.ts";
import type { Replacer } from "./stream-replacer.ts";
import type { TurnShare } from "./turn-share.ts";

// What holds for a request in whatever version of HTTP it came.

/** A connection from a box whose requests can be read. */
export interface ReadConnection {
  /** The name that the box connected to: all requests are for it. */
  readonly host: string;
  readonly port: number;
  /** Secrets are put in only on the way through TLS, and masked on the way back. */
  readonly isSecure: boolean;
  readonly secrets: SecretSet;
  readonly share: TurnShare;
  /** As it is now. */
  policy(): NetworkPolicy;
  /** A request has come. */
  onRequest?(): void;
  /** The host is the one that the request was for. */
  onDenied(sentence: string, host: string): void;
  onMisplaced(sentence: string): void;
  /** The value of the secret of this name was put in. */
  onSecretUsed?(name: string): void;
}

/** For a head. */
export const MOST_HEADER_BYTES = 16 * 1024;
/** For the first head of a connection. */
export const HEAD_WITHIN_MS = 5000;
/** From the end of a response to that of the next head. */
export const BETWEEN_REQUESTS_MS = 60_000;

/** Why a request does not go on, as the answer to it. */
export interface Refusal {
  readonly status: number;
  readonly sentence: string;
  /** Which was asked for, where it is another than the connection's. */
  readonly host?: string;
}

/** The host as programs write it. */
export function authorityOf({ host, port, isSecure }: ReadConnection): string {
  return port === (isSecure ? TLS_PORT : HTTP_PORT) ? host : `${host}:${port}`;
}

/** What is told of a request's destination: all names of a host in it, and which of the host's pages it wants. */
export interface Destination {
  readonly hosts: readonly string[];
  readonly method: string;
  readonly target: string;
}

/** Undefined: it may go on. */
export function refusalOf(connection: ReadConnection, { hosts, method, target }: Destination): Refusal | undefined {
  const { host, port } = connection;
  if (hosts.length !== 1) return { status: 400, sentence: "a request names exactly one host" };
  const named = hosts[0]!.toLowerCase();
  if (named !== authorityOf(connection) && named !== `${host}:${port}`) return otherHost(connection, named);
  if (!/^\/[\x21-\x7e]*$/.test(target)) {
    return { status: 400, sentence: "the target of a request is a path; no proxy is here" };
  }
  // It sends back what it was sent, with what others put in on the way.
  if (method === "TRACE") return { status: 403, sentence: "TRACE is refused by this sandbox's network" };
  const policy = connection.policy();
  if (policy.allows(host, port, method, target)) return undefined;
  const path = target.split("?", 1)[0]!.slice(0, 200);
  const sentence = `${method} ${path} at ${host} is not on this sandbox's list; ask your user for it`;
  return { status: 403, sentence: policy.ruleFor(host, port) === undefined ? refusal(host, port) : sentence };
}

function otherHost(connection: ReadConnection, named: string): Refusal {
  const { host, port } = connection;
  const name = normalHost(named.replace(/:\d{1,5}$/, ""));
  if (name === undefined || name === host) {
    return { status: 400, sentence: "the request names its host in an odd way" };
  }
  if (connection.policy().ruleFor(name, port) === undefined) {
    return { status: 403, sentence: refusal(name, port), host: name };
  }
  return { status: 421, sentence: `this connection is one to ${host}, not to ${name}`, host: name };
}

/** Whom a set of secrets tells where their placeholders were. */
export function secretNews(connection: ReadConnection) {
  const { host, isSecure, onMisplaced, onSecretUsed } = connection;
  return {
    used: ({ name }: SecretRule): void => onSecretUsed?.(name),
    misplaced: ({ name, hosts, place }: SecretRule, where: string): void => {
      const way = isSecure ? "" : " without TLS";
      const rule = `the value goes into ${placeText(place)} of requests to ${hosts.join(", ")} alone`;
      onMisplaced(`the placeholder of ${name} went to ${host}${way} in ${where}; ${rule}`);
    },
  };
}

/** What concerns one connection and not the message (RFC 9110, 7.6.1), and what we say ourselves. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
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

/** Names of headers in small letters. */
export function isOfConnection(name: string): boolean {
  return OF_CONNECTION.has(name);
}

export function isUnmaskable(name: string): boolean {
  return UNMASKABLE.has(name);
}

/** Undefined: it cannot be unpacked here. */
export function decoderOf(encoding: string): Transform | undefined {
  const name = encoding.toLowerCase();
  return Object.hasOwn(DECODERS, name) ? DECODERS[name]?.() : undefined;
}

/** What breaks on the way in breaks what comes out of it. */
export function decoded(from: Readable, decoder: Transform): Transform {
  from.once("close", () => {
    if (!from.readableEnded) decoder.destroy();
  });
  return from.on("error", () => {}).pipe(decoder);
}

/** Where a message goes; its head is sent before the content where that is long in coming. */
type Outgoing = Writable & { flushHeaders?(): void };

interface Passing {
  readonly replacer?: Replacer | undefined;
  /** Ends the other where this one broke; by default it is destroyed. */
  readonly abort?: () => void;
  /** Asked at the end: HTTP/2's streams end when they are reset, too. */
  readonly isWhole?: () => boolean;
}

/**
 * Passes the content of a message on, changed by the replacer. What has come by the end of this turn goes out with the head, as one
 * record of TLS. An end that was none does not look like one.
 */
export function passOn(from: Readable, to: Outgoing, { replacer, isWhole = () => true, ...more }: Passing = {}): void {
  const { abort = () => void to.destroy() } = more;
  const flush = setImmediate(() => to.flushHeaders?.());
  let isTaken = true;
  from.on("data", (piece: Buffer) => {
    const part = replacer === undefined ? piece : replacer.push(piece);
    if (part.length === 0 || !isTaken) return;
    clearImmediate(flush);
    if (to.write(part)) return;
    from.pause();
    to.once("drain", () => from.resume());
  });
  from.once("end", () => {
    clearImmediate(flush);
    const rest = replacer?.flush();
    if (!isTaken) return;
    if (!isWhole()) return abort();
    if (rest === undefined || rest.length === 0) to.end();
    else to.end(rest);
  });
  from.once("error", abort);
  from.once("close", () => {
    if (!from.readableEnded) abort();
  });
  // It may be answered and closed before it has taken everything; the rest has to be read all the same.
  to.once("close", () => {
    clearImmediate(flush);
    isTaken = false;
    from.resume();
  });
}
