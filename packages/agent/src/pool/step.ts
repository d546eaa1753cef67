import { AgentError } from "../errors.ts";
import type { PoolClock } from "./clock.ts";

/** Runs something that belongs to others: what it throws at once is a rejection, and after a time it has failed. */
export async function runStep(
  clock: PoolClock,
  timeoutMs: number,
  step: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const ending = new AbortController();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = clock.after(timeoutMs, () => {
    const error = new AgentError(`it was not done within ${timeoutMs} ms`);
    reject(error);
    ending.abort(error);
  });
  try {
    await Promise.race([(async () => await step(ending.signal))(), late]);
  } finally {
    timer.cancel();
  }
}
