import { LONGEST_TIMER_MS } from "../race.ts";
import type { Clock } from "./options.ts";
import type { Resident } from "./resident.ts";

/** A clock that was set back must not make the reaper spin. */
const SHORTEST_WAIT_MS = 10;

/** Ends what has expired: when the next one is due, when it is told to look, and every so often all the same. */
export function reap(
  all: Iterable<Resident>,
  /** Called again at the next round for one that is still there. */
  end: (expired: Resident) => void,
  { clock, intervalMs }: { readonly clock: Clock; readonly intervalMs: number },
): Disposable & { look(): void } {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  function look(): void {
    if (isStopped) return;
    const nowMs = clock();
    let nextMs = nowMs + intervalMs;
    for (const one of all) {
      const { expiresAtMs } = one.record;
      if (expiresAtMs === undefined) continue;
      if (expiresAtMs <= nowMs) end(one);
      else nextMs = Math.min(nextMs, expiresAtMs);
    }
    clearTimeout(timer);
    timer = setTimeout(look, Math.min(Math.max(nextMs - nowMs, SHORTEST_WAIT_MS), LONGEST_TIMER_MS));
    timer.unref();
  }

  return {
    look,
    [Symbol.dispose]() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
