/** A time limit that is over when the test says so, and not when a busy machine has got nowhere yet. */
export interface HeldTimeout extends Disposable {
  /** To be given as the limit; no other one has it. */
  readonly ms: number;
  /** The time is up. It must have begun. */
  pass(): void;
}

const FOR_EVER_MS = 2 ** 31 - 1;

const { setTimeout: realSet, clearTimeout: realClear } = globalThis;
const held = new Map<number, Map<NodeJS.Timeout, () => void>>();
let used = 0;

/** Of timers in this process. */
export function heldTimeout(): HeldTimeout {
  if (held.size === 0) replaceTimers();
  used += 1;
  const ms = 15_000 + used;
  const timers = new Map<NodeJS.Timeout, () => void>();
  held.set(ms, timers);
  return {
    ms,
    pass() {
      if (timers.size === 0) throw new Error("no such time limit has begun");
      for (const [timer, callback] of timers) {
        globalThis.clearTimeout(timer);
        callback();
      }
    },
    [Symbol.dispose]() {
      held.delete(ms);
      if (held.size === 0) Object.assign(globalThis, { setTimeout: realSet, clearTimeout: realClear });
    },
  };
}

function replaceTimers(): void {
  const set = (callback: (...values: unknown[]) => void, ms?: number, ...values: unknown[]): NodeJS.Timeout => {
    const timers = ms === undefined ? undefined : held.get(ms);
    const timer = realSet(callback, timers === undefined ? ms : FOR_EVER_MS, ...values);
    timers?.set(timer, () => callback(...values));
    return timer;
  };
  const clear = (timer: NodeJS.Timeout | undefined): void => {
    for (const timers of held.values()) if (timer !== undefined) timers.delete(timer);
    realClear(timer);
  };
  Object.assign(globalThis, { setTimeout: Object.assign(set, realSet), clearTimeout: clear });
}
