import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { StatusName } from "@agentfense/protocol";
import { cors } from "@connectrpc/connect";
import type { Log } from "../../runtime/log.ts";
import { failureResponse, statusBody } from "../rest/failure-response.ts";
import { type Authenticator, headerSource } from "./authentication.ts";
import { type Doors, headersAt } from "./doors.ts";
import type { Forwarder } from "./forwarding.ts";
import { destroyResponse, hasBody, hostOf, type NodeRequest, type NodeResponse, sendHead } from "./listener.ts";
import { mayShare, type Refusal, type RequestFacts, type RequestPolicy, refusalOf } from "./request-rules.ts";

/** What decides whether a request is let in at all. */
interface EntranceOptions {
  readonly policy: RequestPolicy;
  readonly authenticator: Authenticator;
  /** Absent where there are none. */
  readonly doors?: Doors | undefined;
  /** Absent where ports of sandboxes are not served. */
  readonly ports?: Forwarder | undefined;
  readonly log: Log;
}

export interface FrontOptions extends EntranceOptions {
  readonly isDraining: () => boolean;
  /** Answers what passed. */
  readonly next: (request: NodeRequest, response: NodeResponse) => void | Promise<void>;
}

/** How long what a client still sends is thrown away after it got its answer, so that it can read the answer first. */
const LINGER_MS = 1_000;

/** What every request passes before anything is done for it: the rules about hosts, origins and content types. */
export function createFront(options: FrontOptions): (request: NodeRequest, response: NodeResponse) => void {
  return (request, response) => {
    // Streams report a vanished client as an error of their own; the calls learn of it by their signal.
    request.on("error", () => {});
    response.on("error", () => {});
    endUnreadRequest(request, response);
    pass(request, response, options)
      .catch((error: unknown) => {
        options.log({ level: "error", message: "a request failed", error });
        if (response.headersSent) destroyResponse(response);
        else sendStatus(response, 500, "INTERNAL", "internal error");
      })
      .catch(() => destroyResponse(response));
  };
}

async function pass(request: NodeRequest, response: NodeResponse, options: FrontOptions): Promise<void> {
  nameHostOfSocket(request);
  const { facts, refusal } = await enter(request, options);
  if (options.isDraining() && !facts.http2) response.setHeader("connection", "close");
  if (refusal !== undefined) {
    sendStatus(response, refusal.httpStatus, refusal.status, refusal.message);
    return;
  }
  if (mayShare(facts, options.policy)) {
    share(facts, response);
    if (facts.method === "OPTIONS") {
      sendHead(response, 204, {});
      response.end();
      return;
    }
  }
  // Who left while we asked for the key is not heard of again.
  if (!response.destroyed && !request.destroyed) await options.next(request, response);
}

/** The rules about hosts, origins and content types. */
async function enter(
  request: NodeRequest,
  { policy, authenticator, doors, ports }: EntranceOptions,
): Promise<{ readonly facts: RequestFacts; readonly refusal: Refusal | undefined }> {
  const target = ports?.find(request);
  const door = target === undefined ? doors?.find(request.url) : undefined;
  const facts = factsOf(request, target?.form ?? (door === undefined ? "api" : "door"));
  const refusal = refusalOf(facts, policy);
  if (!refusal?.keyHelps) return { facts, refusal };
  const keys = door === undefined ? headerSource(request.headers) : headersAt(door, request);
  const isKnown = (await authenticator.holdsKey(keys)) || (await ports?.holdsToken(request));
  return { facts, refusal: isKnown ? undefined : refusal };
}

/**
 * Over a Unix socket, whose ends have no addresses, gRPC clients write the socket's path for a host, "%2Frun%2Fa.sock". That is
 * none, and nobody but this machine can be meant.
 */
function nameHostOfSocket(request: NodeRequest): void {
  if ("stream" in request && request.socket.localAddress === undefined) request.headers[":authority"] = "localhost";
}

function factsOf(request: NodeRequest, place: RequestFacts["place"]): RequestFacts {
  const http2 = request.httpVersionMajor === 2;
  const { headers } = request;
  return {
    http2,
    encrypted: (request.socket as Partial<TLSSocket>).encrypted === true,
    method: request.method ?? "",
    host: hostOf(request),
    origin: headers.origin,
    contentType: headers["content-type"],
    hasBody: hasBody(request),
    place,
    localAddress: request.socket.localAddress,
  };
}

/** Lets a page of an allowed origin make the call and read the answer. There are no cookies to share. */
function share({ origin = "", method }: RequestFacts, response: NodeResponse): void {
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("vary", "Origin");
  if (method === "OPTIONS") {
    response.setHeader("access-control-allow-methods", "GET, POST, PUT, DELETE");
    response.setHeader(
      "access-control-allow-headers",
      [...cors.allowedHeaders, "Authorization", "X-Api-Key", "Last-Event-ID"].join(", "),
    );
    response.setHeader("access-control-max-age", "600");
  } else {
    response.setHeader("access-control-expose-headers", cors.exposedHeaders.join(", "));
  }
}

export function sendStatus(response: NodeResponse, httpStatus: number, status: StatusName, message: string): void {
  const body = JSON.stringify(statusBody(status, message));
  sendHead(response, httpStatus, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
}

/** A client that got its answer before it sent everything is not listened to for ever. */
function endUnreadRequest(request: NodeRequest, response: NodeResponse): void {
  response.once("finish", () => {
    if (request.complete) return;
    const linger = setTimeout(() => {
      if (!request.complete) destroyResponse(response);
    }, LINGER_MS);
    linger.unref();
    request.once("end", () => clearTimeout(linger));
    request.resume();
  });
}

/** Connections that are to become WebSockets: they pass the same rules as requests, then the door that is meant. */
export function createUpgrades(
  options: EntranceOptions,
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  return (request, socket, head) => {
    socket.on("error", () => socket.destroy());
    passUpgrade(request, socket, head, options)
      .catch(async (error: unknown) => {
        const response = failureResponse(error, { log: options.log });
        refuse(socket, response.status, await response.text());
      })
      .catch(() => socket.destroy());
  };
}

async function passUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  options: EntranceOptions,
): Promise<void> {
  const { refusal } = await enter(request, options);
  if (refusal !== undefined) {
    refuse(socket, refusal.httpStatus, JSON.stringify(statusBody(refusal.status, refusal.message)));
    return;
  }
  const isWebSocket = request.headers.upgrade?.toLowerCase() === "websocket";
  if (isWebSocket && (await options.ports?.upgrade(request, socket, head))) return;
  if (isWebSocket && (await options.doors?.upgrade(request, socket, head))) return;
  refuse(socket, 404, JSON.stringify(statusBody("NOT_FOUND", "there is no WebSocket here")));
}

function refuse(socket: Duplex, status: number, body: string): void {
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nconnection: close\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
