/** What one connection, request or owner may take. 0 switches a limit off where that is said. */
export interface ServiceLimits {
  /** Of one request message, after decompression. */
  readonly messageBytes: number;
  /** Of one response message. */
  readonly responseBytes: number;
  /** Of a JSON document sent to REST. */
  readonly bodyBytes: number;
  /** The longest silence within an upload; also the longest a request of a single message may take; 0: no limit. */
  readonly uploadIdleMs: number;
  /** The longest an upload may take; 0: no limit. */
  readonly uploadMs: number;
  /** Per owner; 0: no limit. */
  readonly requestsPerSecond: number;
  /** How many calls an owner may make at once after a quiet time. */
  readonly burst: number;
  /** Per owner; 0: no limit. */
  readonly concurrentCalls: number;
  /** Per HTTP/2 connection. */
  readonly streamsPerConnection: number;
  /** Per listener; 0: no limit. */
  readonly connections: number;
  readonly headerBytes: number;
  /** For a request's headers, the first bytes of a connection and a TLS handshake. */
  readonly headerTimeoutMs: number;
  /** For a connection without a call. */
  readonly idleTimeoutMs: number;
}

export const DEFAULT_LIMITS: ServiceLimits = {
  messageBytes: 4 * 1024 * 1024,
  responseBytes: 64 * 1024 * 1024,
  bodyBytes: 4 * 1024 * 1024,
  uploadIdleMs: 300_000,
  uploadMs: 24 * 3_600_000,
  requestsPerSecond: 2000,
  burst: 4000,
  concurrentCalls: 256,
  streamsPerConnection: 256,
  connections: 4096,
  headerBytes: 16 * 1024,
  headerTimeoutMs: 20_000,
  idleTimeoutMs: 120_000,
};
