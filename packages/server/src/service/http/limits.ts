/** What one connection, request or owner may take. 0 switches a limit off where that is said. */
export const DEFAULT_LIMITS = {
  /** Of one request message, after decompression. */
  messageBytes: 4 * 1024 * 1024,
  /** Of one response message. */
  responseBytes: 64 * 1024 * 1024,
  /** Of a JSON document sent to REST. */
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
