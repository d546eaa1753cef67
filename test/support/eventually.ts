import { setTimeout as pause } from "node:timers/promises";

/** Longer than anything takes but a hang, also on a machine that has much else to do. */
export const HANG_MS = 60_000;

const LOOK_EVERY_MS = 10;

/**
 * Waits until `check` holds and returns what it returned: it holds when it neither throws nor returns false. This is the one
 * place where tests wait by the clock; what they wait for is always a state, and only a hang is a failure.
 */
export async function eventually<Result>(check: () => Result): Promise<Awaited<Result>> {
  const givesUpAtMs = performance.now() + HANG_MS;
  for (;;) {
    try {
      const result = await check();
      if (result !== false) return result;
      if (performance.now() > givesUpAtMs) throw new Error(`it never came true: ${check}`);
    } catch (error) {
      if (performance.now() > givesUpAtMs) throw error;
    }
    await pause(LOOK_EVERY_MS);
  }
}

/**
 * Lets some time pass, for something that must not happen to happen, or to come at a moment nobody chose. Never for something that
 * has to happen: nothing a test expects may need this to be long enough.
 */
export async function aWhile(ms: number): Promise<void> {
  await pause(ms);
}
