import type { BrokerEvent, ConfirmationBroker, Requester, ReviewerIdentity } from "../broker.ts";
import type { ConfirmationRequest } from "../confirmation.ts";
import {
  type AnswerRefusal,
  type ClientMessage,
  type PendingConfirmation,
  requestText,
  type ServerText,
} from "../protocol.ts";
import type { Peer } from "./peer.ts";

/** What a connection became by its hello. */
export interface DoorSession {
  /** Returns what is wrong with the message, if anything is. */
  receive(message: ClientMessage): string | undefined;
  /** The connection is gone. */
  end(): void;
}

export interface RequesterSessionOptions {
  readonly peer: Peer;
  readonly broker: ConfirmationBroker;
  readonly requester: Omit<Requester, "signal">;
}

/** Somebody who asks. */
export class RequesterSession implements DoorSession {
  readonly #options: RequesterSessionOptions;
  /** What waits for an answer, by the requester's name for it. The broker limits how many. */
  readonly #asked = new Map<string, AbortController>();

  constructor(options: RequesterSessionOptions) {
    this.#options = options;
  }

  receive(message: ClientMessage): string | undefined {
    switch (message.type) {
      case "request":
        if (this.#asked.has(message.ref)) return "this ref waits for an answer already";
        void this.#ask(message.ref, message.request);
        return undefined;
      case "withdraw":
        // It may have been answered at the same moment.
        this.#asked.get(message.ref)?.abort();
        return undefined;
      default:
        return `a requester does not send "${message.type}"`;
    }
  }

  end(): void {
    for (const controller of this.#asked.values()) controller.abort();
  }

  async #ask(ref: string, request: ConfirmationRequest): Promise<void> {
    const { peer, broker, requester } = this.#options;
    const controller = new AbortController();
    this.#asked.set(ref, controller);
    try {
      const answer = await broker.request(request, { ...requester, signal: controller.signal });
      peer.send({ type: "answer", ref, ...answer });
    } catch {
      // Withdrawn: nobody waits for an answer.
    } finally {
      this.#asked.delete(ref);
    }
  }
}

/** A message with more in it is sent, and waited for, before the next one is made. */
const PART_CHARACTERS = 256 * 1024;

export interface ReviewerSessionOptions {
  readonly peer: Peer;
  readonly broker: ConfirmationBroker;
  readonly identity: ReviewerIdentity;
  /** Else it only watches. */
  readonly mayAnswer: boolean;
}

/** Somebody who sees what is pending, and may answer. */
export class ReviewerSession implements DoorSession {
  readonly #options: ReviewerSessionOptions;
  readonly #stopWatching: () => void;

  constructor(options: ReviewerSessionOptions) {
    this.#options = options;
    this.#stopWatching = options.broker.watch(options.identity, (event) => options.peer.send(this.#textOf(event)));
    void this.#tellPending();
  }

  receive(message: ClientMessage): string | undefined {
    if (message.type !== "answer") return `a reviewer does not send "${message.type}"`;
    const reason = this.#answer(message);
    const { id } = message;
    this.#options.peer.send(
      reason === undefined ? { type: "answer_accepted", id } : { type: "answer_refused", id, reason },
    );
    return undefined;
  }

  end(): void {
    this.#stopWatching();
  }

  #answer(message: ClientMessage & { readonly type: "answer" }): AnswerRefusal | undefined {
    const { broker, identity, mayAnswer } = this.#options;
    if (!mayAnswer) return "not_allowed";
    const outcome = broker.answer(message, identity);
    return outcome.accepted ? undefined : outcome.reason;
  }

  /**
   * In parts, at the pace of the reader: all that is pending may be much. What is resolved in between is not sent any more,
   * what is asked in between comes by itself.
   */
  async #tellPending(): Promise<void> {
    const { peer, broker, identity } = this.#options;
    const ids = broker.pending(identity).map(({ id }) => id);
    let [part, characters] = [[] as PendingText[], 0];
    for (const id of ids) {
      const pending = broker.find(identity, id);
      if (pending === undefined) continue;
      const text = this.#pendingText(pending);
      part.push(text);
      characters += JSON.stringify(text).length;
      if (characters < PART_CHARACTERS) continue;
      await peer.sendAtItsPace({ type: "pending", requests: part, complete: false });
      if (!peer.isOpen) return;
      [part, characters] = [[], 0];
    }
    peer.send({ type: "pending", requests: part, complete: true });
  }

  #textOf(event: BrokerEvent): ServerText {
    if (event.type === "requested") return { type: "requested", request: this.#pendingText(event.pending) };
    return { type: "resolved", id: event.id, ...event.resolution };
  }

  #pendingText({ id, hash, ownerId, requestedAt, request }: PendingConfirmation): PendingText {
    const told = this.#options.identity.ownerId === undefined && ownerId !== undefined ? { ownerId } : {};
    return { id, hash, ...told, requestedAt: requestedAt.toISOString(), request: requestText(request) };
  }
}

type PendingText = (ServerText & { readonly type: "requested" })["request"];
