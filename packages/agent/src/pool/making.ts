import { AgentError } from "../errors.ts";
import type { Timer } from "./clock.ts";
import type { PoolSettings } from "./options.ts";

/**
 * Calls `create`, for as long as it may take. What it gives after `ending` is handed to `unmake` and counts as a
 * failure. One that does not heed the signal is not waited for: should it still give something some day, that is
 * unmade then.
 */
export async function makeInTime<T>(
  settings: Pick<PoolSettings<T>, "clock" | "create" | "createTimeoutMs" | "stepTimeoutMs">,
  ending: AbortController,
  unmake: (late: T) => Promise<void>,
): Promise<T> {
  const { clock, create, createTimeoutMs, stepTimeoutMs } = settings;
  const { signal } = ending;
  const { promise: deaf, reject: giveUp } = Promise.withResolvers<never>();
  let patience: Timer | undefined;
  const timer = clock.after(createTimeoutMs, () =>
    ending.abort(new AgentError(`an instance was not made within ${createTimeoutMs} ms`)),
  );
  signal.addEventListener("abort", () => {
    patience = clock.after(stepTimeoutMs, () => giveUp(signal.reason));
  });
  const creation = (async () => await create(signal))().then(async (instance) => {
    if (!signal.aborted) return instance;
    await unmake(instance);
    throw signal.reason;
  });
  try {
    return await Promise.race([creation, deaf]);
  } finally {
    timer.cancel();
    patience?.cancel();
  }
}
