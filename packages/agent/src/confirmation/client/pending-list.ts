import { requestHash } from "../hash.ts";
import type { ConfirmationResolution, PendingConfirmation, ServerMessage } from "../protocol.ts";

export type ReviewEvent =
  | { readonly type: "requested"; readonly pending: PendingConfirmation }
  /** Without a resolution: it ended while there was no connection. */
  | { readonly type: "resolved"; readonly id: string; readonly resolution?: ConfirmationResolution | undefined };

/** What is pending, as a reviewer knows it, over any number of connections. */
export class PendingList {
  readonly #known = new Map<string, PendingConfirmation>();
  readonly #emit: (event: ReviewEvent) => void;
  /** Seen on this connection; what is not among them when the list is complete ended while we were away. */
  #confirmed: Set<string> | undefined = new Set();

  constructor(emit: (event: ReviewEvent) => void) {
    this.#emit = emit;
  }

  get all(): PendingConfirmation[] {
    return [...this.#known.values()];
  }

  get(id: string): PendingConfirmation | undefined {
    return this.#known.get(id);
  }

  /** A new connection begins; what is known stays until its list says otherwise. */
  beginConnection(): void {
    this.#confirmed = new Set();
  }

  receive(message: ServerMessage): void {
    if (message.type === "requested") this.#add(message.request);
    else if (message.type === "resolved") {
      const { decision, reviewer, comment } = message;
      this.#remove(message.id, { decision, reviewer, comment });
    } else if (message.type === "pending") {
      for (const pending of message.requests) this.#add(pending);
      if (message.complete) this.#forgetUnconfirmed();
    }
  }

  #add(pending: PendingConfirmation): void {
    this.#confirmed?.add(pending.id);
    if (this.#known.has(pending.id)) return;
    // Not the server's word for it: the answer is to name what is shown here.
    const shown = { ...pending, hash: requestHash(pending.request) };
    this.#known.set(pending.id, shown);
    this.#emit({ type: "requested", pending: shown });
  }

  #remove(id: string, resolution?: ConfirmationResolution): void {
    if (this.#known.delete(id)) this.#emit({ type: "resolved", id, resolution });
  }

  #forgetUnconfirmed(): void {
    const confirmed = this.#confirmed;
    this.#confirmed = undefined;
    if (confirmed === undefined) return;
    for (const id of [...this.#known.keys()]) if (!confirmed.has(id)) this.#remove(id);
  }
}
