import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

/** A signal that is aborted at a moment that nobody chose. */
export function abortedSoon(): AbortSignal {
  const controller = new AbortController();
  void aWhile(100).then(() => controller.abort());
  return controller.signal;
}

/** Does something and returns its result; whatever takes as long as a hang is one. */
export async function withoutHanging<Result>(work: () => Result): Promise<Awaited<Result>> {
  const startedAtMs = performance.now();
  const over = new AbortController();
  const hang = pause(HANG_MS, "hangs", { signal: over.signal }).catch(() => "over");
  try {
    const outcome = await Promise.race([Promise.resolve(work()).then((result) => ({ result })), hang]);
    // What never lets go of the thread is found out afterwards.
    if (typeof outcome === "string" || performance.now() - startedAtMs > HANG_MS) {
      throw new Error(`it takes longer than ${HANG_MS} ms: ${work}`);
    }
    return outcome.result;
  } finally {
    over.abort();
  }
}

/** Waits until a file that is changed now has a later time than one that was changed before: those clocks tick slowly. */
export async function aTickOfFileTimes(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-tick-"));
  try {
    const timeOfFile = (name: string): bigint => {
      writeFileSync(join(directory, name), "");
      return statSync(join(directory, name), { bigint: true }).mtimeNs;
    };
    const before = timeOfFile("before");
    await eventually(() => timeOfFile("after") > before);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
