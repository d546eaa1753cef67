import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Engine } from "@agentfense/sdk/engine";

// A way into a server besides gRPC and REST. The server knows the same shape; it imports nothing of this package.

export interface DoorCaller {
  /** Undefined: an administrator, or a server without keys. */
  readonly ownerId: string | undefined;
  readonly role: "admin" | "user" | "read-only";
  readonly keyId?: string | undefined;
}

/** A request that has passed the server's rules about hosts and origins, and whose key is valid. */
export interface DoorCall {
  readonly caller: DoorCaller;
  /** The server's own calls, made as this caller: what he may not do is refused there. */
  readonly transport: Engine["transport"];
}

/** It holds nothing of its own: what outlives a request, such as a running command, goes on over the server's transport. */
export function engineOver(transport: Engine["transport"]): Engine {
  return { name: "this server", transport, [Symbol.asyncDispose]: async () => {} };
}

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
  /** Must not reject. */
  answer(request: Request, call: DoorCall): Promise<Response>;
  /** Takes the connection over; absent where there are no WebSockets. Must not throw. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer, call: DoorCall): void;
  /** The server ends: connections are closed, what was begun is ended. */
  close?(): Promise<void>;
}
