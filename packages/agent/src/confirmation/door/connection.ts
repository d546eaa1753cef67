import type { DoorCaller } from "@agentfense/doors";
import type { RawData, WebSocket } from "ws";
import type { ConfirmationBroker } from "../broker.ts";
import { type ClientMessage, clientMessage, parseMessage } from "../protocol.ts";
import { type DoorSession, RequesterSession, ReviewerSession } from "./door-session.ts";
import { Peer } from "./peer.ts";

/**
 * Who may answer what an owner's key asked through the door.
 *
 * | value       | may answer                                                                              |
 * | "owner"     | every key of that owner that is not read-only, also the one that asked; administrators  |
 * | "other-key" | the same, without the key that asked                                                     |
 * | "admin"     | administrators                                                                           |
 */
export type ConfirmationReviewers = "owner" | "other-key" | "admin";

export interface ConnectionOptions {
  readonly broker: ConfirmationBroker;
  readonly reviewers: ConfirmationReviewers;
  readonly caller: DoorCaller;
  readonly heartbeatMs: number;
  readonly helloMs: number;
  readonly maxBufferedBytes: number;
}

/** Serves one connection until it ends. */
export function serveConnection(socket: WebSocket, options: ConnectionOptions): Peer {
  const peer = new Peer(socket, options.maxBufferedBytes);
  let session: DoorSession | undefined;
  const silence = setTimeout(() => peer.reject("no hello in time"), options.helloMs).unref();

  const receive = (message: ClientMessage | undefined): string | undefined => {
    if (message === undefined) return "not a message of this protocol";
    if (session !== undefined) return session.receive(message);
    if (message.type !== "hello") return "the first message is hello";
    clearTimeout(silence);
    const opened = openSession(peer, message, options);
    if (typeof opened === "string") return opened;
    session = opened;
    return undefined;
  };
  socket.on("message", (data: RawData, isBinary: boolean) => {
    if (!peer.isOpen) return;
    peer.hear();
    const mistake = receive(isBinary ? undefined : parseMessage(clientMessage, data.toString()));
    if (mistake !== undefined) peer.reject(mistake);
  });
  // The library closes the connection after what is none of WebSocket's, and after what is too large.
  socket.on("error", () => {});
  socket.once("close", () => {
    clearTimeout(silence);
    session?.end();
  });
  return peer;
}

type Hello = ClientMessage & { readonly type: "hello" };

/** The session, or why there is none. */
function openSession(peer: Peer, hello: Hello, options: ConnectionOptions): DoorSession | string {
  const { broker, caller, reviewers, heartbeatMs } = options;
  const { ownerId, role, keyId } = caller;
  const isReviewer = hello.role === "reviewer";
  if (!isReviewer && role === "read-only") return "a read-only key may not ask";
  const mayAnswer = isReviewer && role !== "read-only" && (reviewers !== "admin" || role === "admin");
  peer.send({ type: "welcome", mayAnswer, heartbeatMs, maxRequestBytes: broker.maxRequestBytes });
  if (isReviewer) {
    const identity = { ownerId, keyId, name: nameOf(caller, hello) };
    return new ReviewerSession({ peer, broker, identity, mayAnswer });
  }
  const accepts = (reviewer: { readonly keyId?: string | undefined }): boolean =>
    reviewers !== "other-key" || reviewer.keyId !== keyId;
  return new RequesterSession({ peer, broker, requester: { ownerId, accepts } });
}

/** The key comes first: it is proven, the name is not. */
function nameOf({ keyId }: DoorCaller, { name }: Hello): string | undefined {
  if (keyId === undefined || name === undefined) return keyId ?? name;
  return `${keyId} (${name})`;
}
