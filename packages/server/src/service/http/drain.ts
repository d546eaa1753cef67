import { RuntimeError } from "../../runtime/errors.ts";
import { unless } from "../race.ts";
import { fromRuntimeError } from "../rpc/errors.ts";
import type { Doors } from "./doors.ts";
import type { Listener } from "./listener.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { Serving } from "./serving.ts";

/** Between the end of the calls and the end of their connections: the last errors are on their way. */
const FLUSH_MS = 200;

/** Takes no new call, lets those that run end, and ends what is left after `graceMs`. */
export async function drainService(
  {
    serving,
    calls,
    listeners,
    doors,
  }: {
    readonly serving: Serving;
    readonly calls: RunningCalls;
    readonly listeners: readonly Listener[];
    readonly doors: Doors;
  },
  graceMs: number,
): Promise<void> {
  const goodbye = fromRuntimeError(new RuntimeError("SHUTTING_DOWN", "the server is shutting down"));
  serving.drain();
  await settledWithin(doors.close(), FLUSH_MS); // they have a way of their own to say goodbye
  calls.cutEndless(goodbye);
  const closed = Promise.all(listeners.map((listener) => listener.closed));
  const stopAll = (): void => {
    for (const listener of listeners) listener.stop();
  };
  stopAll();
  // A connection whose last call just ended is idle and goes with the next round.
  const rounds = setInterval(stopAll, 50);
  try {
    if (await settledWithin(closed, graceMs)) return;
    calls.cutAll(goodbye);
    await settledWithin(closed, FLUSH_MS);
  } finally {
    clearInterval(rounds);
  }
}

async function settledWithin(promise: Promise<unknown>, waitMs: number): Promise<boolean> {
  const settled = promise.then(() => true);
  return await unless(settled, { waitMs, late: () => false });
}
