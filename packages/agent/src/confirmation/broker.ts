import { randomBytes } from "node:crypto";
import { atTime } from "./ask.ts";
import type { ConfirmationAnswer, ConfirmationRequest } from "./confirmation.ts";
import { isSameHash, requestHash } from "./hash.ts";
import { type AnswerRefusal, type ConfirmationResolution, type PendingConfirmation, requestBytes } from "./protocol.ts";
import { tellAll } from "./tell.ts";

const MIB = 1024 * 1024;

export interface ConfirmationBrokerOptions {
  /** Default 1,000. */
  readonly maxPendingPerOwner?: number | undefined;
  /** The largest request, as JSON. Default 2 MiB. */
  readonly maxRequestBytes?: number | undefined;
  /** How much an owner may have pending. Default 16 MiB. */
  readonly maxBytesPerOwner?: number | undefined;
  /** How much may be pending altogether. Default 256 MiB. */
  readonly maxBytes?: number | undefined;
  readonly now?: (() => number) | undefined;
}

type Settled<Options> = { readonly [Name in keyof Options]-?: NonNullable<Options[Name]> };

/** Whose requests somebody sees. Undefined: everybody's. */
export interface ConfirmationViewer {
  readonly ownerId: string | undefined;
}

export interface Requester {
  /** Undefined: nobody's in particular; only who sees everybody's requests sees these. */
  readonly ownerId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether somebody who sees the request may also answer it. Default: yes. */
  readonly accepts?: ((reviewer: ReviewerIdentity) => boolean) | undefined;
}

export interface ReviewerIdentity extends ConfirmationViewer {
  readonly keyId?: string | undefined;
  /** For whoever reads the answer. */
  readonly name?: string | undefined;
}

export interface GivenAnswer {
  readonly id: string;
  /** The hash of what the reviewer was shown. */
  readonly hash: string;
  readonly approve: boolean;
  readonly comment?: string | undefined;
}

export type AnswerOutcome = { readonly accepted: true } | { readonly accepted: false; readonly reason: AnswerRefusal };

export type BrokerEvent =
  | { readonly type: "requested"; readonly pending: PendingConfirmation }
  | { readonly type: "resolved"; readonly id: string; readonly resolution: ConfirmationResolution };

interface Entry {
  readonly pending: PendingConfirmation;
  readonly bytes: number;
  readonly accepts: (reviewer: ReviewerIdentity) => boolean;
  readonly settle: (resolution: ConfirmationResolution) => void;
}

interface Watch {
  readonly viewer: ConfirmationViewer;
  readonly listener: (event: BrokerEvent) => void;
}

/** How many that are over can still be told from those that never were. */
const REMEMBERED = 10_000;

/** Why an answer to a request that is over is refused. */
const REFUSALS = {
  approved: "already_answered",
  denied: "already_answered",
  timed_out: "expired",
  withdrawn: "withdrawn",
} satisfies Record<ConfirmationResolution["decision"], AnswerRefusal>;

/**
 * Where those who ask and those who answer meet. Each request has one answer: the first. It is gone from here as soon as it
 * is answered, too late, or no longer asked, and everybody who watches is told.
 */
export class ConfirmationBroker implements Disposable {
  readonly maxRequestBytes: number;
  readonly #options: Settled<Omit<ConfirmationBrokerOptions, "maxRequestBytes">>;
  readonly #entries = new Map<string, Entry>();
  readonly #usage = new Map<string | undefined, { count: number; bytes: number }>();
  readonly #past = new Map<string, { readonly ownerId: string | undefined; readonly refusal: AnswerRefusal }>();
  readonly #watches = new Set<Watch>();
  #bytes = 0;
  #closed = false;

  constructor(options: ConfirmationBrokerOptions = {}) {
    this.maxRequestBytes = options.maxRequestBytes ?? 2 * MIB;
    this.#options = {
      maxPendingPerOwner: options.maxPendingPerOwner ?? 1000,
      maxBytesPerOwner: options.maxBytesPerOwner ?? 16 * MIB,
      maxBytes: options.maxBytes ?? 256 * MIB,
      now: options.now ?? Date.now,
    };
  }

  /** Waits for an answer until the request expires. Rejects with the signal's reason. */
  async request(request: ConfirmationRequest, requester: Requester = {}): Promise<ConfirmationAnswer> {
    const { ownerId, signal, accepts = () => true } = requester;
    signal?.throwIfAborted();
    // A copy: what is shown stays what the hash is of, whatever happens to the original.
    const asked = frozenCopy(request);
    const hash = requestHash(asked);
    if (!this.#isValid(asked)) return { decision: "timed_out", hash };
    const bytes = requestBytes(asked);
    const refusal = this.#refusalOf(ownerId, bytes);
    if (refusal !== undefined) return { decision: "denied", hash, comment: refusal };

    const id = randomBytes(18).toString("base64url");
    const requestedAt = new Date(this.#options.now());
    const pending: PendingConfirmation = { id, hash, ownerId, requestedAt, request: asked };
    const { promise, resolve } = Promise.withResolvers<ConfirmationResolution>();
    this.#add({ pending, bytes, accepts, settle: resolve });
    const onAbort = (): void => this.#resolve(id, { decision: "withdrawn" });
    signal?.addEventListener("abort", onAbort, { once: true });
    const cancelExpiry = atTime(asked.expiresAt.getTime(), this.#options.now, () =>
      this.#resolve(id, { decision: "timed_out" }),
    );
    try {
      const { decision, ...rest } = await promise;
      // An answer that came first stands, even if it is no longer wanted when it is read.
      if (decision === "withdrawn") signal?.throwIfAborted();
      return { decision: decision === "withdrawn" ? "denied" : decision, hash, ...rest };
    } finally {
      cancelExpiry();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** What this viewer sees, oldest first. */
  pending(viewer: ConfirmationViewer): PendingConfirmation[] {
    return [...this.#entries.values()].map(({ pending }) => pending).filter(({ ownerId }) => sees(viewer, ownerId));
  }

  find(viewer: ConfirmationViewer, id: string): PendingConfirmation | undefined {
    const pending = this.#entries.get(id)?.pending;
    return pending !== undefined && sees(viewer, pending.ownerId) ? pending : undefined;
  }

  /** Counts if it is the first, in time, and for exactly what is asked. */
  answer(given: GivenAnswer, reviewer: ReviewerIdentity): AnswerOutcome {
    const entry = this.#entries.get(given.id);
    if (entry === undefined || !sees(reviewer, entry.pending.ownerId)) {
      const past = this.#past.get(given.id);
      return refused(past !== undefined && sees(reviewer, past.ownerId) ? past.refusal : "unknown");
    }
    // The timer may be late, the clock is not.
    if (!this.#isValid(entry.pending.request)) {
      this.#resolve(given.id, { decision: "timed_out" });
      return refused("expired");
    }
    if (!entry.accepts(reviewer)) return refused("not_allowed");
    if (!isSameHash(given.hash, entry.pending.hash)) return refused("hash_mismatch");
    this.#resolve(given.id, {
      decision: given.approve ? "approved" : "denied",
      ...(reviewer.name === undefined ? {} : { reviewer: reviewer.name }),
      ...(given.comment === undefined ? {} : { comment: given.comment }),
    });
    return { accepted: true };
  }

  /** From now on; the function that it gives ends it. */
  watch(viewer: ConfirmationViewer, listener: (event: BrokerEvent) => void): () => void {
    const watch: Watch = { viewer, listener };
    this.#watches.add(watch);
    return () => void this.#watches.delete(watch);
  }

  /** What is pending is denied, and so is what is asked from now on. */
  close(): void {
    this.#closed = true;
    for (const id of [...this.#entries.keys()]) {
      this.#resolve(id, { decision: "withdrawn", comment: "confirmations have ended here" });
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #isValid(request: ConfirmationRequest): boolean {
    return this.#options.now() < request.expiresAt.getTime();
  }

  #refusalOf(ownerId: string | undefined, bytes: number): string | undefined {
    const { maxPendingPerOwner, maxBytesPerOwner, maxBytes } = this.#options;
    const used = this.#usage.get(ownerId) ?? { count: 0, bytes: 0 };
    if (this.#closed) return "confirmations have ended here";
    if (bytes > this.maxRequestBytes) return `too large to be asked: ${bytes} bytes, at most ${this.maxRequestBytes}`;
    if (used.count >= maxPendingPerOwner) return `${used.count} requests are waiting for an answer already`;
    if (used.bytes + bytes > maxBytesPerOwner || this.#bytes + bytes > maxBytes) {
      return "too much is waiting for an answer already";
    }
    return undefined;
  }

  #add(entry: Entry): void {
    this.#entries.set(entry.pending.id, entry);
    this.#account(entry, 1);
    this.#tell(entry.pending.ownerId, { type: "requested", pending: entry.pending });
  }

  /** The only way out, taken once by each entry. */
  #resolve(id: string, resolution: ConfirmationResolution): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    const { ownerId } = entry.pending;
    this.#entries.delete(id);
    this.#account(entry, -1);
    this.#past.set(id, { ownerId, refusal: REFUSALS[resolution.decision] });
    if (this.#past.size > REMEMBERED) this.#past.delete(this.#past.keys().next().value!);
    entry.settle(resolution);
    this.#tell(ownerId, { type: "resolved", id, resolution });
  }

  #account({ pending: { ownerId }, bytes }: Entry, sign: 1 | -1): void {
    const used = this.#usage.get(ownerId) ?? { count: 0, bytes: 0 };
    const count = used.count + sign;
    if (count === 0) this.#usage.delete(ownerId);
    else this.#usage.set(ownerId, { count, bytes: used.bytes + sign * bytes });
    this.#bytes += sign * bytes;
  }

  #tell(ownerId: string | undefined, event: BrokerEvent): void {
    const concerned = [...this.#watches].filter(({ viewer }) => sees(viewer, ownerId));
    tellAll(
      concerned.map(({ listener }) => listener),
      event,
    );
  }
}

/** What is another owner's is as absent as what never was. */
function sees(viewer: ConfirmationViewer, ownerId: string | undefined): boolean {
  return viewer.ownerId === undefined || viewer.ownerId === ownerId;
}

function refused(reason: AnswerRefusal): AnswerOutcome {
  return { accepted: false, reason };
}

function frozenCopy(request: ConfirmationRequest): ConfirmationRequest {
  const { sessionId, action, code, risk, reason, expiresAt } = request;
  const detected = risk.detected.map((seen) => Object.freeze({ ...seen }));
  return Object.freeze({
    sessionId,
    action,
    code,
    risk: Object.freeze({ level: risk.level, detected: Object.freeze(detected) }),
    reason,
    expiresAt: new Date(expiresAt),
  });
}
