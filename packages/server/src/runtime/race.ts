/** The longest that a timer of Node can wait. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What a promise that may never settle is raced against. */
export interface Race<Late> {
  readonly signal?: AbortSignal | undefined;
  /** Together with `late`. */
  readonly waitMs?: number;
  /** What comes of it when the time is over: its value, or its error. */
  readonly late?: () => Late;
}

/** The promise, unless its signal aborts before (then its reason), or the time is over. Leaves nothing behind on the signal. */
export async function unless<Value, Late = never>(
  promise: Promise<Value>,
  { signal, waitMs = Number.POSITIVE_INFINITY, late }: Race<Late>,
): Promise<Value | Late> {
  const { promise: other, resolve, reject } = Promise.withResolvers<Late>();
  const onAbort = (): void => reject(signal?.reason);
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const onTime = (): void => {
    try {
      resolve(late!());
    } catch (error) {
      reject(error);
    }
  };
  const timer = Number.isFinite(waitMs)
    ? setTimeout(onTime, Math.min(LONGEST_TIMER_MS, Math.max(0, waitMs)))
    : undefined;
  try {
    return await Promise.race([promise, other]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
