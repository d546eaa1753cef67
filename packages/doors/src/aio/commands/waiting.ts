import { setTimeout as sleep } from "node:timers/promises";
import * as shape from "../../shape.ts";
import type { AioDoorOptions } from "../options.ts";
import type { RunningCommand } from "./running-command.ts";

type WaitEnd = "done" | "time" | "quiet";

/** Waits for the end of a command, or until the time is up, it has printed nothing for a while, or nobody listens. */
export async function waitFor(
  command: RunningCommand,
  limits: { readonly timeMs?: number; readonly quietMs?: number; readonly signal: AbortSignal },
): Promise<WaitEnd> {
  const { timeMs = Number.POSITIVE_INFINITY, quietMs = Number.POSITIVE_INFINITY, signal } = limits;
  const endsAt = performance.now() + timeMs;
  while (command.isRunning) {
    const leftMs = endsAt - performance.now();
    if (leftMs <= 0 || signal.aborted) return "time";
    const news = quietMs === Number.POSITIVE_INFINITY ? command.done : command.news;
    const heard = await newsWithin(news, Math.min(leftMs, quietMs), signal);
    if (!heard && !signal.aborted && quietMs < leftMs) return "quiet";
  }
  return "done";
}

/** Whether a promise was fulfilled in time. */
export async function newsWithin(news: Promise<void>, ms: number, signal: AbortSignal): Promise<boolean> {
  if (ms === Number.POSITIVE_INFINITY && !signal.aborted) {
    const aborted = Promise.withResolvers<boolean>();
    const stop = (): void => aborted.resolve(false);
    signal.addEventListener("abort", stop, { once: true });
    try {
      return await Promise.race([news.then(() => true), aborted.promise]);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }
  const over = new AbortController();
  const timer = sleep(Math.min(ms, 2 ** 31 - 1), false, { signal: AbortSignal.any([over.signal, signal]), ref: false });
  try {
    return await Promise.race([news.then(() => true), timer.catch(() => false)]);
  } finally {
    over.abort();
  }
}

const LONGEST_MS = 24 * 3600 * 1000;

export const SECONDS = shape
  .number()
  .min(0)
  .max(LONGEST_MS / 1000);

/** Clients of the AIO sandbox know no limit unless they give one: without one it is the longest that the server allows. */
export function hardTimeoutMs(hardTimeout: number | undefined, { longestMs = LONGEST_MS }: AioDoorOptions): number {
  return hardTimeout === undefined ? longestMs : hardTimeout * 1000;
}
