import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Transport } from "@connectrpc/connect";
import type { Caller } from "../../runtime/caller.ts";
import type { Log } from "../../runtime/log.ts";
import { failureResponse } from "../rest/failure-response.ts";
import { type Authenticator, type Credential, type HeaderSource, headerSource, isBearer } from "./authentication.ts";
import type { NodeRequest, NodeResponse } from "./listener.ts";
import { limitedAs, type RunningCalls } from "./running-calls.ts";
import { webListener } from "./web.ts";

/** A request that has passed the rules about hosts and origins, and whose key is valid. */
export interface DoorCall {
  readonly caller: Caller;
  /** The calls of the contract, made as this caller: what he may not do is refused there. */
  readonly transport: Transport;
}

/** A way in besides gRPC and REST, made by somebody above the server. */
export interface Door {
  /** "/aio/": every request below is this door's. Without a slash at the end: exactly this path. */
  readonly prefix: string;
  /** It has a listener of its own there, and none of its requests come to the port of REST. */
  readonly address?: string | undefined;
  /** A key besides those in `Authorization` and `X-Api-Key`. */
  keyIn?(headers: IncomingHttpHeaders, target: string, method: string): string | undefined;
  /** The key of whoever may reach the ports of a sandbox by their host names, where a request has neither a key nor a token for them. */
  portKeyIn?(headers: IncomingHttpHeaders, sandboxId: string): string | undefined;
  /** What those are told who are not let in, in the door's own words. Default: as at REST. */
  refusal?(status: number, message: string): Response;
  answer(request: Request, call: DoorCall): Promise<Response>;
  /** Takes the connection over; absent where there are no WebSockets. Must not throw. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer, call: DoorCall): void;
  /** The server ends: connections are closed, what was begun is ended. */
  close?(): Promise<void>;
}

type NodeHandler = (request: NodeRequest, response: NodeResponse) => Promise<void>;

export interface DoorsOptions {
  readonly doors: readonly Door[];
  readonly authenticator: Authenticator;
  readonly calls: RunningCalls;
  /** In memory, with the checks that every call passes. */
  readonly transport: Transport;
  readonly log: Log;
}

/** All doors: finds the one that is meant, and lets in who has a key. */
export class Doors {
  readonly #options: DoorsOptions;
  readonly #listeners: ReadonlyMap<Door, NodeHandler>;
  #closing: Promise<unknown> | undefined;

  constructor(options: DoorsOptions) {
    this.#options = options;
    const answerOf = (door: Door) =>
      webListener(options.log, async (request, incoming) => {
        let credential: Credential;
        try {
          credential = await options.authenticator.identify(headersAt(door, incoming));
        } catch (error) {
          const told = failureResponse(error, { log: options.log, signal: request.signal });
          if (door.refusal === undefined) return told;
          const { message } = (await told.json()) as { readonly message: string };
          return door.refusal(told.status, message);
        }
        return await door.answer(request, this.#callOf(credential));
      });
    this.#listeners = new Map(options.doors.map((door) => [door, answerOf(door)]));
  }

  find(target: string | undefined): Door | undefined {
    const path = target?.split("?", 1)[0] ?? "";
    return this.#options.doors.find(({ prefix }) => (prefix.endsWith("/") ? path.startsWith(prefix) : path === prefix));
  }

  /** False: there is no door of this path. */
  async answer(request: NodeRequest, response: NodeResponse): Promise<boolean> {
    const door = this.find(request.url);
    if (door === undefined) return false;
    await this.#listeners.get(door)?.(request, response);
    return true;
  }

  /**
   * Hands a connection over; it is cut when its key is revoked or the server ends. False: there is no such door. Throws when
   * it is not let in.
   */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<boolean> {
    const door = this.find(request.url);
    if (door?.upgrade === undefined) return false;
    const credential = await this.#options.authenticator.identify(headersAt(door, request));
    if (socket.destroyed) return true;
    const running = this.#options.calls.begin({
      owner: limitedAs(credential.caller),
      secret: credential.secret,
      endless: true,
      signal: new AbortController().signal,
    });
    socket.once("close", () => running.end());
    running.cut.addEventListener("abort", () => socket.destroy(), { once: true });
    door.upgrade(request, socket, head, this.#callOf(credential));
    return true;
  }

  /** Idempotent. */
  close(): Promise<unknown> {
    this.#closing ??= Promise.allSettled(this.#options.doors.map(async (door) => await door.close?.()));
    return this.#closing;
  }

  #callOf({ caller, secret }: Credential): DoorCall {
    const { transport } = this.#options;
    return { caller, transport: secret === undefined ? transport : withKey(transport, secret) };
  }
}

/** Every call carries the key of who made it: it is looked at again for each. */
function withKey(transport: Transport, secret: string): Transport {
  const add = (header: ConstructorParameters<typeof Headers>[0]): Headers => {
    const headers = new Headers(header);
    headers.set("authorization", `Bearer ${secret}`);
    return headers;
  };
  return {
    unary: (method, signal, timeoutMs, header, input, contextValues) =>
      transport.unary(method, signal, timeoutMs, add(header), input, contextValues),
    stream: (method, signal, timeoutMs, header, input, contextValues) =>
      transport.stream(method, signal, timeoutMs, add(header), input, contextValues),
  };
}

/** The headers in which a key is looked for. */
export function headersAt(door: Door, request: NodeRequest): HeaderSource {
  const usual = headerSource(request.headers);
  const key = door.keyIn?.(request.headers, request.url ?? "", request.method ?? "");
  if (key === undefined || isBearer(usual)) return usual;
  return { get: (name) => (name === "x-api-key" ? key : name === "authorization" ? null : usual.get(name)) };
}
