import { RuntimeError } from "../../runtime/runtime-error.ts";

/** What one connection, request or owner may take. 0 switches a limit off where that is said. */
export const DEFAULT_LIMITS = {
  /** The largest request message, after decompression. */
  messageBytes: 4 * 1024 * 1024,
  /** The largest response message. */
  responseBytes: 64 * 1024 * 1024,
  /** The largest JSON document sent to REST. */
  bodyBytes: 4 * 1024 * 1024,
  /** The longest silence within an upload; also the longest a request of a single message may take; 0: no limit. */
  uploadIdleMs: 300_000,
  /** The longest an upload may take; 0: no limit. */
  uploadMs: 24 * 3_600_000,
  /** Per owner; 0: no limit. */
  requestsPerSecond: 2000,
  /** How many calls an owner may make at once after a quiet time. */
  burst: 4000,
  /** Per owner; 0: no limit. */
  concurrentCalls: 256,
  /** Per HTTP/2 connection. */
  streamsPerConnection: 256,
  /** Per listener; 0: no limit. */
  connections: 4096,
  headerBytes: 16 * 1024,
  /** For a request's headers, the first bytes of a connection and a TLS handshake. */
  headerTimeoutMs: 20_000,
  /** For a connection without a call. */
  idleTimeoutMs: 120_000,
};

export type ServiceLimits = Readonly<typeof DEFAULT_LIMITS>;

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/** Above this many owners, those whose bucket is full again are forgotten. */
const REMEMBERED_OWNERS = 10_000;

/** A token bucket per owner. */
export class OwnerRates {
  readonly #options: { readonly perSecond: number; readonly burst: number; readonly now: () => number };
  readonly #buckets = new Map<string, Bucket>();

  /** `perSecond` 0: no limit. */
  constructor(options: { readonly perSecond: number; readonly burst: number; readonly now: () => number }) {
    this.#options = { ...options, burst: Math.max(1, options.burst) };
  }

  /** Counts one call; RATE_LIMITED when the owner has none left. */
  take(owner: string): void {
    if (this.#options.perSecond <= 0) return;
    const bucket = this.#filled(owner);
    if (bucket.tokens < 1) {
      const retryAfterMs = Math.ceil(((1 - bucket.tokens) / this.#options.perSecond) * 1000);
      throw new RuntimeError("RATE_LIMITED", "too many requests", {
        details: { retry_after_ms: String(retryAfterMs) },
        hint: `try again in ${retryAfterMs} ms`,
      });
    }
    bucket.tokens -= 1;
  }

  #filled(owner: string): Bucket {
    const nowMs = this.#options.now();
    const known = this.#buckets.get(owner);
    if (known === undefined && this.#buckets.size >= REMEMBERED_OWNERS) this.#forgetIdle(nowMs);
    const tokens = known === undefined ? this.#options.burst : this.#level(known, nowMs);
    const bucket = { tokens, filledAtMs: nowMs };
    this.#buckets.set(owner, bucket);
    return bucket;
  }

  #level(bucket: Bucket, nowMs: number): number {
    const elapsedMs = Math.max(0, nowMs - bucket.filledAtMs);
    return Math.min(this.#options.burst, bucket.tokens + (elapsedMs / 1000) * this.#options.perSecond);
  }

  #forgetIdle(nowMs: number): void {
    for (const [owner, bucket] of this.#buckets) {
      if (this.#level(bucket, nowMs) >= this.#options.burst) this.#buckets.delete(owner);
    }
  }
}
