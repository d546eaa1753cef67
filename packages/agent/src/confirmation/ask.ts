import type { ConfirmationAnswer, ConfirmationRequest } from "./confirmation.ts";
import { requestHash } from "./hash.ts";

/** An answer before it is bound to what was asked. */
export type Reply = Omit<ConfirmationAnswer, "hash">;

export interface AskOptions {
  readonly signal?: AbortSignal | undefined;
  readonly now?: (() => number) | undefined;
}

/**
 * What `ask` replies, for as long as the request is valid: afterwards the answer is "timed_out", however late `ask` ends.
 * Rejects with the signal's reason. The signal that `ask` gets is aborted as soon as its reply is of no more use.
 */
export async function askUntilExpiry(
  request: ConfirmationRequest,
  { signal, now = Date.now }: AskOptions,
  ask: (signal: AbortSignal) => Promise<Reply>,
): Promise<ConfirmationAnswer> {
  signal?.throwIfAborted();
  // Before anything is shown: a request that is changed meanwhile does not match its answer.
  const hash = requestHash(request);
  const isValid = (): boolean => now() < request.expiresAt.getTime();
  if (!isValid()) return { decision: "timed_out", hash };

  const over = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const onAbort = (): void => reject(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const cancelExpiry = atTime(request.expiresAt.getTime(), now, () => resolve({ decision: "timed_out" }));
  try {
    ask(over.signal).then(resolve, reject);
    const reply = await promise;
    return { ...(isValid() ? reply : { decision: "timed_out" }), hash };
  } finally {
    cancelExpiry();
    signal?.removeEventListener("abort", onAbort);
    over.abort();
  }
}

/** What a timer of Node can hold. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls back once the clock says so: not by the length of a timer, which the clock may have overtaken. */
export function atTime(atMs: number, now: () => number, callback: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const wait = (): void => {
    const leftMs = atMs - now();
    timer = leftMs > 0 ? setTimeout(wait, Math.min(Math.ceil(leftMs), LONGEST_TIMER_MS)) : setTimeout(callback);
  };
  wait();
  return () => clearTimeout(timer);
}
