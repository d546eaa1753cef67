import type { ConfirmationBroker } from "./broker.ts";
import type { ConfirmationAnswer, ConfirmationRequest, ConfirmationService } from "./confirmation.ts";

/** Asks the reviewers that are connected to the door of this broker, in this process. */
export class WebSocketConfirmationService implements ConfirmationService {
  readonly #broker: ConfirmationBroker;
  readonly #ownerId: string | undefined;

  /** Without an owner, administrators are asked: on a server without keys that is everybody. */
  constructor(broker: ConfirmationBroker, options: { readonly ownerId?: string | undefined } = {}) {
    this.#broker = broker;
    this.#ownerId = options.ownerId;
  }

  request(
    request: ConfirmationRequest,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ConfirmationAnswer> {
    return this.#broker.request(request, { ownerId: this.#ownerId, signal: options.signal });
  }
}
