import { AgentError } from "../../errors.ts";
import { type AnswerRefusal, LONGEST_COMMENT, type PendingConfirmation, type ServerMessage } from "../protocol.ts";
import { tellAll } from "../tell.ts";
import {
  type ConfirmationConnectionError,
  type ConfirmationEndpoint,
  type Link,
  type LinkTarget,
  linkTarget,
  pauseBeforeAttempt,
  runLink,
} from "./link.ts";
import { PendingList, type ReviewEvent } from "./pending-list.ts";

export interface ConfirmationReviewerOptions extends ConfirmationEndpoint {
  /** Told to those who read the answers. */
  readonly name?: string | undefined;
  /** For the first connection. */
  readonly signal?: AbortSignal | undefined;
}

/** "disconnected": it is not known whether the answer arrived; if the request is still there later, it did not. */
export type ReviewOutcome =
  | { readonly accepted: true }
  | { readonly accepted: false; readonly reason: AnswerRefusal | "disconnected" };

/**
 * Sees what waits for an answer at a server, and answers. A lost connection is made anew; what is pending is seen again. No
 * answer is ever sent a second time by itself.
 */
export class ConfirmationReviewer implements AsyncDisposable {
  readonly #target: LinkTarget;
  readonly #name: string | undefined;
  readonly #closing = new AbortController();
  readonly #listeners = new Set<(event: ReviewEvent) => void>();
  readonly #answers = new Map<string, (outcome: ReviewOutcome) => void>();
  readonly #pending = new PendingList((event) => this.#tell(event));
  #link: Link | undefined;
  #running: Promise<void> | undefined;
  /** Why there is no more connection, once that is for good. */
  #failure: Error | undefined;
  #ended = false;
  #changed = Promise.withResolvers<void>();

  private constructor({ name, ...endpoint }: ConfirmationReviewerOptions) {
    this.#target = linkTarget(endpoint);
    this.#name = name;
  }

  /** Connects and waits until all that is pending is known. Rejects when that cannot be done. */
  static async connect(options: ConfirmationReviewerOptions): Promise<ConfirmationReviewer> {
    const { signal } = options;
    signal?.throwIfAborted();
    const reviewer = new ConfirmationReviewer(options);
    const stop = (): void => reviewer.#closing.abort();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      await reviewer.#start();
      signal?.throwIfAborted();
      return reviewer;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** What waits for an answer, oldest first. */
  get pending(): readonly PendingConfirmation[] {
    return this.#pending.all;
  }

  /** False: the key may only watch. Undefined: there is no connection now. */
  get mayAnswer(): boolean | undefined {
    return this.#link?.welcome.mayAnswer;
  }

  /** Told of each change of what is pending; the function that it gives ends that. */
  subscribe(listener: (event: ReviewEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Each request once, those that are pending first. Ends with `close`; throws when the server does not let us in any more. */
  async *[Symbol.asyncIterator](): AsyncGenerator<PendingConfirmation, void, undefined> {
    const given = new Set<string>();
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended) return;
      const changed = this.#changed.promise;
      const next = this.#pending.all.find(({ id }) => !given.has(id));
      if (next !== undefined) {
        given.add(next.id);
        yield next;
        continue;
      }
      for (const id of given) if (this.#pending.get(id) === undefined) given.delete(id);
      await changed;
    }
  }

  /** Answers exactly what was shown under this id. */
  async answer(id: string, approve: boolean, comment?: string): Promise<ReviewOutcome> {
    if (comment !== undefined && comment.length > LONGEST_COMMENT) {
      throw new AgentError(`a comment has at most ${LONGEST_COMMENT} characters`);
    }
    const shown = this.#pending.get(id);
    if (shown === undefined) return { accepted: false, reason: "unknown" };
    if (this.#answers.has(id)) return { accepted: false, reason: "already_answered" };
    if (this.#link === undefined) return { accepted: false, reason: "disconnected" };
    const { promise, resolve } = Promise.withResolvers<ReviewOutcome>();
    this.#answers.set(id, resolve);
    this.#link.send({ type: "answer", id, hash: shown.hash, approve, ...(comment === undefined ? {} : { comment }) });
    return await promise;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #start(): Promise<void> {
    const { promise: listed, resolve } = Promise.withResolvers<void>();
    this.#running = this.#stayConnected(resolve);
    await Promise.race([listed, this.#running]);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Never rejects. What fails before the first list is complete is not tried again. */
  async #stayConnected(onListed: () => void): Promise<void> {
    const { signal } = this.#closing;
    let wasListed = false;
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      const error = await this.#connection(() => {
        [wasListed, attempt] = [true, 0];
        onListed();
      });
      if (signal.aborted) break;
      if (error.isFinal || !wasListed) {
        this.#failure = error;
        break;
      }
      await pauseBeforeAttempt(attempt, signal).catch(() => {}); // closed meanwhile
    }
    this.#ended = true;
    this.#wake();
  }

  /** From its beginning to its end. */
  async #connection(onListed: () => void): Promise<ConfirmationConnectionError> {
    this.#pending.beginConnection();
    const error = await runLink(
      this.#target,
      { role: "reviewer", ...(this.#name === undefined ? {} : { name: this.#name }) },
      {
        onOpen: (link) => {
          this.#link = link;
        },
        onMessage: (message) => {
          this.#receive(message);
          if (message.type === "pending" && message.complete) onListed();
        },
        signal: this.#closing.signal,
      },
    );
    this.#link = undefined;
    for (const id of [...this.#answers.keys()]) this.#settle(id, { accepted: false, reason: "disconnected" });
    return error;
  }

  #receive(message: ServerMessage): void {
    if (message.type === "answer_accepted") this.#settle(message.id, { accepted: true });
    else if (message.type === "answer_refused") this.#settle(message.id, { accepted: false, reason: message.reason });
    else this.#pending.receive(message);
  }

  #settle(id: string, outcome: ReviewOutcome): void {
    this.#answers.get(id)?.(outcome);
    this.#answers.delete(id);
  }

  #tell(event: ReviewEvent): void {
    tellAll(this.#listeners, event);
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
