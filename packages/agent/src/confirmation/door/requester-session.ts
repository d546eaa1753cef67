import type { ConfirmationBroker, Requester } from "../broker.ts";
import type { ConfirmationRequest } from "../confirmation.ts";
import type { ClientMessage } from "../protocol.ts";
import type { Peer } from "./peer.ts";
import type { Session } from "./session.ts";

export interface RequesterSessionOptions {
  readonly peer: Peer;
  readonly broker: ConfirmationBroker;
  readonly requester: Omit<Requester, "signal">;
}

/** Somebody who asks. */
export class RequesterSession implements Session {
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
