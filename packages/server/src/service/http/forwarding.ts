import { type ClientRequest, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Keys } from "../../runtime/keys/api.ts";
import type { Log } from "../../runtime/log.ts";
import type { PortGrant, PortTokens } from "../../runtime/ports/tokens.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import type { Sandboxes } from "../../runtime/sandboxes/api.ts";
import { failureResponse } from "../rest/failure-response.ts";
import { type Authenticator, type Credential, EVERYBODY, headerSource } from "./authentication.ts";
import { sendStatus } from "./front.ts";
import type { OwnerRates } from "./limits.ts";
import {
  destroyResponse,
  hasBody,
  hostOf,
  isCutShort,
  type NodeRequest,
  type NodeResponse,
  sendHead,
} from "./listener.ts";
import {
  foreignCookies,
  isOwnCookie,
  type PortTarget,
  portTargetOf,
  TOKEN_HEADER,
  tokenCookie,
  tokenCookieOf,
} from "./port-target.ts";
import { limitedAs, type RunningCall, type RunningCalls } from "./running-calls.ts";

export interface ForwarderOptions {
  readonly sandboxes: Pick<Sandboxes, "connect">;
  readonly tokens: PortTokens;
  /** Undefined: there are none, and everybody may do everything. */
  readonly keys: Pick<Keys, "callerOf"> | undefined;
  /** Undefined: nobody gets in without a token. */
  readonly authenticator: Authenticator | undefined;
  /** A key for the ports of a sandbox, at their host names, that a door knows of; absent: there are no doors. */
  readonly portKeyIn?: ((headers: IncomingMessage["headers"], sandboxId: string) => string | undefined) | undefined;
  readonly calls: RunningCalls;
  readonly rates: OwnerRates;
  readonly isDraining: () => boolean;
  /** How large the headers of an answer from the sandbox may be. */
  readonly headerBytes: number;
  /** How long a program in the sandbox may think about an answer. */
  readonly answerTimeoutMs: number;
  readonly log: Log;
}

/** Its secret has to stay valid as long as the connection lasts. */
interface Admission extends Credential {
  /** When the token in use expires. */
  readonly expiresAtMs?: number;
}

/**
 * Forwards HTTP and WebSockets to ports of sandboxes. What is sent there is made anew from what was parsed here, and the other way round:
 * no byte of a head passes as it came. On the path form, which has the origin of the API, browsers are told to give what they get no
 * origin at all; the host form has one of its own.
 */
export class Forwarder {
  readonly #options: ForwarderOptions;

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  find(request: NodeRequest): PortTarget | undefined {
    return portTargetOf(hostOf(request), request.url ?? "");
  }

  /** Whether it has a valid token in a place where no page of another origin could put one. */
  async holdsToken(request: NodeRequest): Promise<boolean> {
    const target = this.find(request);
    const token = target === undefined ? undefined : explicitToken(request, target);
    return token !== undefined && (await this.grantOf(token)) !== undefined;
  }

  /** Whether a token has expired, or the key behind it is gone. */
  async isRevoked(token: string): Promise<boolean> {
    return (await this.grantOf(token)) === undefined;
  }

  /** False: it is for nobody's port. */
  async answer(request: NodeRequest, response: NodeResponse): Promise<boolean> {
    const target = this.find(request);
    if (target === undefined) return false;
    try {
      const admission = await this.#admit(request, target);
      if (isVisit(request, target)) this.#welcome(request, response, target, admission);
      else await this.#forward(request, response, target, admission);
    } catch (error) {
      await this.#fail(response, error);
    }
    return true;
  }

  /** The same for a connection that is to become a WebSocket. Throws when it is not let in. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<boolean> {
    const target = this.find(request);
    if (target === undefined) return false;
    const admission = await this.#admit(request, target);
    const call = this.#begin(admission, true);
    socket.once("close", () => call.end());
    call.cut.addEventListener("abort", () => socket.destroy(), { once: true });
    try {
      const inside = await this.#connect(admission, target, call);
      socket.once("close", () => inside.destroy());
      if (socket.destroyed) return true;
      const upstream = this.#request(request, target, inside, {
        connection: "Upgrade",
        upgrade: "websocket",
      });
      upstream.once("upgrade", (answer, tunnel, first) => {
        const headers = answerHeaders(answer, target);
        socket.write(headText(101, { ...headers, connection: "Upgrade", upgrade: "websocket" }));
        if (first.length > 0) socket.write(first);
        if (head.length > 0) tunnel.write(head);
        join(socket, tunnel as Socket);
      });
      upstream.once("response", (answer) => {
        socket.write(headText(answer.statusCode ?? 502, { ...answerHeaders(answer, target), connection: "close" }));
        pipeline(answer, socket, () => socket.destroy());
      });
      upstream.once("error", () => socket.destroy());
      upstream.end();
      return true;
    } catch (error) {
      call.end();
      throw error;
    }
  }

  /** The caller behind a token. */
  async grantOf(token: string): Promise<(PortGrant & Pick<Credential, "caller">) | undefined> {
    const grant = this.#options.tokens.read(token);
    if (grant === undefined) return undefined;
    const { keys } = this.#options;
    const caller = keys === undefined ? EVERYBODY.caller : grant.keyId && (await keys.callerOf(grant.keyId));
    return caller ? { ...grant, caller } : undefined;
  }

  /** A token that is given and not valid is refused, whatever else there is. */
  async #admit(request: NodeRequest, target: PortTarget): Promise<Admission> {
    const { authenticator, rates, isDraining } = this.#options;
    if (isDraining()) throw new RuntimeError("SHUTTING_DOWN", "the server is shutting down");
    if (!target.path.startsWith("/")) throw new RuntimeError("INVALID_ARGUMENT", "the request names no path");
    const cookie = target.form === "host" ? tokenCookieOf(request.headers) : undefined;
    const token = explicitToken(request, target) ?? cookie;
    const admission =
      token === undefined ? await this.#byKey(request, target, authenticator) : await this.#byToken(token, target);
    if (admission.caller.role === "read-only")
      throw new RuntimeError("ROLE_FORBIDS", "a read-only key may not use ports");
    rates.take(limitedAs(admission.caller));
    return admission;
  }

  async #byKey(
    { headers }: NodeRequest,
    { form, sandboxId }: PortTarget,
    authenticator: Authenticator | undefined,
  ): Promise<Admission> {
    if (authenticator === undefined) throw refused("a token is required");
    const known = form === "host" ? this.#options.portKeyIn?.(headers, sandboxId) : undefined;
    if (known === undefined) return await authenticator.identify(headerSource(headers));
    return await authenticator.identify({ get: (name) => (name === "x-api-key" ? known : null) });
  }

  async #byToken(token: string, { sandboxId, port }: PortTarget): Promise<Admission> {
    const grant = await this.grantOf(token);
    if (grant?.sandboxId !== sandboxId || grant.port !== port) throw refused("the token is not valid for this port");
    return { caller: grant.caller, secret: token, expiresAtMs: grant.expiresAtMs };
  }

  #begin({ caller, secret }: Admission, endless: boolean): RunningCall {
    const { signal } = new AbortController();
    return this.#options.calls.begin({ owner: limitedAs(caller), secret, endless, signal });
  }

  async #connect({ caller }: Admission, { sandboxId, port }: PortTarget, call: RunningCall): Promise<Socket> {
    const socket = await this.#options.sandboxes.connect(caller, sandboxId, port, call.signal);
    call.cut.addEventListener("abort", () => socket.destroy(), { once: true });
    return socket.on("error", () => {});
  }

  /**
   * A browser came by a link. The token becomes a cookie, and the page that is asked for is the next step. A redirect would not do: it counts
   * as asked for by the site with the link, and to that this cookie is not sent.
   */
  #welcome(request: NodeRequest, response: NodeResponse, { path, token = "" }: PortTarget, admission: Admission): void {
    const secure = (request.socket as Partial<TLSSocket>).encrypted === true;
    const next = path.startsWith("//") ? "/" : path;
    const escaped = next
      .replaceAll(/[^A-Za-z0-9/._~?=&%-]/g, (letter) => encodeURIComponent(letter))
      .replaceAll("&", "&amp;");
    const body = `<!doctype html><meta http-equiv="refresh" content="0;url=${escaped}">`;
    sendHead(response, 200, {
      "content-type": "text/html; charset=utf-8",
      "content-length": Buffer.byteLength(body),
      "content-security-policy": "default-src 'none'",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "set-cookie": tokenCookie(token, { expiresAtMs: admission.expiresAtMs ?? 0, secure }),
    });
    response.end(request.method === "HEAD" ? "" : body);
  }

  async #forward(
    request: NodeRequest,
    response: NodeResponse,
    target: PortTarget,
    admission: Admission,
  ): Promise<void> {
    const call = this.#begin(admission, false);
    try {
      const inside = await this.#connect(admission, target, call);
      response.once("close", () => inside.destroy());
      if (response.destroyed) return;
      await this.#exchange(request, response, target, inside);
    } finally {
      call.end();
    }
  }

  async #exchange(request: NodeRequest, response: NodeResponse, target: PortTarget, inside: Socket): Promise<void> {
    const { promise: over, resolve, reject } = Promise.withResolvers<void>();
    const upstream = this.#request(request, target, inside, bodyHeaders(request));
    const patience = setTimeout(() => reject(tooLate(target)), this.#options.answerTimeoutMs).unref();
    response.once("close", resolve);
    upstream.once("error", (error) => reject(badAnswer(target, error)));
    upstream.once("upgrade", (_answer, tunnel) => {
      tunnel.destroy();
      reject(badAnswer(target));
    });
    upstream.once("response", (answer) => {
      clearTimeout(patience);
      sendHead(response, answer.statusCode ?? 502, answerHeaders(answer, target));
      passOn(answer, request.method ?? "", inside, response);
      // The head goes with the first of the content, if that came with it, and does not wait for it; over HTTP/2 it has gone.
      setImmediate(() => {
        if ("flushHeaders" in response && !response.writableEnded && !response.destroyed) response.flushHeaders();
      });
    });
    // A program may answer before it has read everything: its leaving ends neither the request nor our answer.
    upstream.once("close", () => request.unpipe(upstream));
    request.once("end", () => (isCutShort(request) ? upstream.destroy() : upstream.end()));
    request.pipe(upstream, { end: false });
    try {
      await over;
    } finally {
      clearTimeout(patience);
      upstream.on("error", () => {}).destroy();
    }
  }

  #request(request: NodeRequest, target: PortTarget, inside: Socket, headers: OutgoingHttpHeaders): ClientRequest {
    return httpRequest({
      createConnection: () => inside,
      method: request.method,
      path: target.path,
      headers: { ...requestHeaders(request, target), ...headers },
      setHost: false,
      maxHeaderSize: this.#options.headerBytes,
      insecureHTTPParser: false,
    });
  }

  async #fail(response: NodeResponse, error: unknown): Promise<void> {
    if (response.headersSent) {
      destroyResponse(response);
      return;
    }
    if (error instanceof RuntimeError && error.code === "PORT_CLOSED") {
      sendStatus(response, error.details.late === undefined ? 502 : 504, "UNAVAILABLE", error.message);
      return;
    }
    const answer = failureResponse(error, { log: this.#options.log });
    sendHead(response, answer.status, Object.fromEntries(answer.headers));
    response.end(await answer.text());
  }
}

/** In a header or in the query: where only somebody who knows it can have put it. */
function explicitToken(request: NodeRequest, { token: inQuery }: PortTarget): string | undefined {
  const inHeader = [request.headers[TOKEN_HEADER]].flat()[0];
  if (inHeader !== undefined && inQuery !== undefined && inHeader !== inQuery) throw refused("two tokens were given");
  return inHeader ?? inQuery;
}

/** A page that somebody opens by a link. */
function isVisit({ method, headers }: NodeRequest, { form, token }: PortTarget): boolean {
  const wantsPage = headers.accept?.includes("text/html") ?? false;
  return form === "host" && token !== undefined && (method === "GET" || method === "HEAD") && wantsPage;
}

/** Headers that belong to one connection, or to those who pass a request on. */
const HOP_BY_HOP = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "http2-settings", "expect", "host", "content-length"],
  ...["forwarded", "via", "cookie", TOKEN_HEADER],
]);

/** A key or a token of ours, wherever it stands: what runs in the sandbox is not to have it. */
const KEY = /\baf(?:_key|e|t)_/;

function requestHeaders(request: NodeRequest, { form, port }: PortTarget): OutgoingHttpHeaders {
  const dropped = new Set([...HOP_BY_HOP, ...namesIn(request.headers.connection)]);
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith(":") || name.startsWith("x-forwarded-") || dropped.has(name)) continue;
    // On the path form they are ours; on a host name of its own a program may have its own.
    const isCredential = name === "authorization" || name === "x-api-key";
    if ((isCredential && form === "path") || KEY.test(String(value))) continue;
    headers[name] = value;
  }
  const cookies = form === "host" ? foreignCookies(request.headers) : "";
  return {
    ...headers,
    ...(cookies === "" ? {} : { cookie: cookies }),
    host: form === "host" ? hostOf(request) : `localhost:${port}`,
    "x-forwarded-proto": (request.socket as Partial<TLSSocket>).encrypted === true ? "https" : "http",
  };
}

/** The length that was announced, or pieces; nothing for a request without a body. */
function bodyHeaders(request: NodeRequest): OutgoingHttpHeaders {
  const length = request.headers["content-length"];
  if (length !== undefined) return { "content-length": length };
  return hasBody(request) ? { "transfer-encoding": "chunked" } : {};
}

/** What would give a page a hold on the API's origin, or on a browser's dealings with it. */
const OF_AN_ORIGIN = new Set([
  ...["set-cookie", "service-worker-allowed", "clear-site-data", "strict-transport-security", "www-authenticate"],
  ...["alt-svc", "nel", "report-to", "reporting-endpoints", "origin-agent-cluster", "x-content-type-options"],
]);

function answerHeaders(answer: IncomingMessage, { form, sandboxId, port }: PortTarget): OutgoingHttpHeaders {
  const dropped = new Set([...HOP_BY_HOP, ...namesIn(answer.headers.connection)]);
  dropped.delete("content-length");
  const headers: Record<string, string[]> = {};
  for (const [name, values = []] of Object.entries(answer.headersDistinct)) {
    if (dropped.has(name)) continue;
    if (form === "path" && (OF_AN_ORIGIN.has(name) || name.startsWith("access-control-"))) continue;
    headers[name] = name === "set-cookie" ? values.filter(isOwnCookie) : values;
  }
  if (form === "host") return headers;
  const [location] = headers.location ?? [];
  if (location?.startsWith("/") && !location.startsWith("//")) {
    headers.location = [`/v1/sandboxes/${sandboxId}/ports/${port}${location}`];
  }
  return {
    ...headers,
    "content-security-policy": [...(headers["content-security-policy"] ?? []), "sandbox"] as string[] & string,
    "x-content-type-options": "nosniff",
  };
}

function namesIn(list: string | undefined): string[] {
  return (list ?? "").split(",").map((name) => name.trim().toLowerCase());
}

function headText(status: number, headers: OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((each) => `${name}: ${each}`),
  );
  return `HTTP/1.1 ${status} \r\n${lines.join("\r\n")}\r\n\r\n`;
}

/** Each sees the end of the other, or goes with it; and what one does not take the other does not send. */
function join(one: Duplex, other: Duplex): void {
  one.pipe(other).pipe(one);
  for (const [gone, left] of [
    [one, other],
    [other, one],
  ] as const) {
    gone.once("close", () => {
      if (!gone.readableEnded || !gone.writableFinished) left.destroy();
    });
  }
}

function refused(message: string): RuntimeError {
  return new RuntimeError("UNAUTHENTICATED", message, { hint: "ask for another link" });
}

function tooLate({ port }: PortTarget): RuntimeError {
  return new RuntimeError("PORT_CLOSED", `what listens at port ${port} of the sandbox does not answer`, {
    details: { late: "true" },
  });
}

function badAnswer({ port }: PortTarget, cause?: unknown): RuntimeError {
  const message = `what listens at port ${port} of the sandbox gave no answer that is HTTP`;
  return new RuntimeError("PORT_CLOSED", message, { cause });
}

/** Less is not worth the trouble. */
const LARGE = 1 << 18;
/** What may wait for the caller to take it: a few pieces, so that not each of them stops the program and wakes it again. */
const MOST_HELD = 1 << 19;

/**
 * Passes on the content of an answer that begins to come over `inside`. Half of it does not look like the whole. Much of it, of a length that is
 * known, goes from one socket to the other: the parser has found where it begins, and would only copy it from there.
 */
function passOn(answer: IncomingMessage, method: string, inside: Socket, response: NodeResponse): void {
  const length = contentLength(answer, method);
  if (length >= LARGE) {
    // When the piece that has the head is parsed to its end: content may begin in it.
    process.nextTick(passByParser, answer, length, inside, response);
    return;
  }
  answer.once("error", () => destroyResponse(response));
  answer.pipe(response as NodeJS.WritableStream);
}

/** 0 where the parser has to find the end, or there is no content at all. */
function contentLength({ headers, statusCode = 0 }: IncomingMessage, method: string): number {
  const hasNone = method === "HEAD" || statusCode === 204 || statusCode === 304;
  if (hasNone || headers["transfer-encoding"] !== undefined) return 0;
  return Number(headers["content-length"] ?? 0);
}

function passByParser(answer: IncomingMessage, length: number, inside: Socket, response: NodeResponse): void {
  const target = response as NodeJS.WritableStream;
  let left = length;
  const take = (data: Buffer): void => {
    const content = data.subarray(0, left);
    left -= content.length;
    if (left === 0) {
      inside.pause();
      target.end(content);
    } else if (!target.write(content) && response.writableLength > MOST_HELD) {
      inside.pause();
      target.once("drain", () => inside.resume());
    }
  };
  // To the parser it looks as if no more came, and then broke off.
  inside.removeAllListeners("data");
  answer.on("error", () => {});
  inside.once("close", () => {
    if (left > 0) destroyResponse(response);
  });
  const begun = answer.read() as Buffer | null;
  inside.on("data", take);
  if (begun !== null) take(begun);
  if (left > 0) inside.resume();
  if (left > 0 && inside.destroyed) destroyResponse(response);
}
