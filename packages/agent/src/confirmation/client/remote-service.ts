import { randomUUID } from "node:crypto";
import { askUntilExpiry, type Reply } from "../ask.ts";
import type { ConfirmationAnswer, ConfirmationRequest, ConfirmationService } from "../confirmation.ts";
import { isSameHash, requestHash } from "../hash.ts";
import { requestBytes, requestText, type ServerMessage } from "../protocol.ts";
import {
  ConfirmationConnectionError,
  type ConfirmationEndpoint,
  type LinkTarget,
  linkTarget,
  pauseBeforeAttempt,
  runLink,
} from "./link.ts";

type Answer = ServerMessage & { readonly type: "answer" };

/**
 * Asks the reviewers of a server, from another process. Each request has a connection of its own; one that is lost is made
 * anew, and the same is asked again, until the request expires.
 */
export class RemoteConfirmationService implements ConfirmationService {
  readonly #target: LinkTarget;

  constructor(endpoint: ConfirmationEndpoint) {
    this.#target = linkTarget(endpoint);
  }

  request(
    request: ConfirmationRequest,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ConfirmationAnswer> {
    return askUntilExpiry(request, options, async (signal) => {
      const ref = randomUUID();
      for (let attempt = 0; ; attempt += 1) {
        try {
          return await this.#ask(request, ref, signal);
        } catch (error) {
          if (!(error instanceof ConfirmationConnectionError)) throw error;
          if (error.isFinal) return { decision: "denied", comment: error.message };
          await pauseBeforeAttempt(attempt, signal);
        }
      }
    });
  }

  async #ask(request: ConfirmationRequest, ref: string, signal: AbortSignal): Promise<Reply> {
    const over = new AbortController();
    const { promise, resolve } = Promise.withResolvers<Reply>();
    const ended = runLink(
      this.#target,
      { role: "requester" },
      {
        onOpen: ({ welcome: { maxRequestBytes }, send }) => {
          if (requestBytes(request) <= maxRequestBytes) send({ type: "request", ref, request: requestText(request) });
          else resolve({ decision: "denied", comment: `too large to be asked: at most ${maxRequestBytes} bytes` });
        },
        onMessage: (message) => {
          if (message.type === "answer" && message.ref === ref) resolve(replyOf(message, request));
        },
        signal: AbortSignal.any([signal, over.signal]),
      },
    );
    try {
      const reply = await Promise.race([promise, ended]);
      if (reply instanceof ConfirmationConnectionError) throw reply;
      return reply;
    } finally {
      over.abort();
      await ended;
    }
  }
}

/** What was agreed to elsewhere must be what is asked here. */
function replyOf({ decision, hash, reviewer, comment }: Answer, request: ConfirmationRequest): Reply {
  if (!isSameHash(hash, requestHash(request))) {
    return { decision: "denied", comment: "the answer is for something else than what was asked" };
  }
  return { decision, ...(reviewer === undefined ? {} : { reviewer }), ...(comment === undefined ? {} : { comment }) };
}
