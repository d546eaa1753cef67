import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { SandboxError } from "../errors.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/** Whoever is told to wait for longer rather hears of it. */
const LONGEST_ASKED_PAUSE_MS = 10_000;

/** Doing it twice is as good as doing it once. */
export function isIdempotent({ idempotency }: DescMethod): boolean {
  return idempotency === Idempotency.NO_SIDE_EFFECTS || idempotency === Idempotency.IDEMPOTENT;
}

/** How long to wait before the attempt after this one (the first is 0); undefined when it is not worth one. */
export function pauseBefore(
  attempt: number,
  error: SandboxError,
  random: () => number = Math.random,
): number | undefined {
  if (!error.retryable) return undefined;
  // Half of it is chance, so that many clients that lost one server do not come back at the same moment.
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt) * (0.5 + random() / 2);
  const askedMs = Number(error.details.retry_after_ms ?? 0);
  if (askedMs > LONGEST_ASKED_PAUSE_MS) return undefined;
  return Math.max(pauseMs, askedMs > 0 ? askedMs : 0);
}

/** Waits; an abort throws its reason. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
