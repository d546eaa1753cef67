import { setTimeout as sleep } from "node:timers/promises";
import { FREEZING_PATIENCE_MS, tooBusyToFreeze } from "../backend/pause-switch.ts";
import {
  type HostProcess,
  isOutOfReach,
  isSameProcess,
  isStill,
  signalProcess,
  waitUntilGone,
  withDescendants,
} from "./host-processes.ts";

const SIGKILL = 9;
const SIGCONT = 18;
const SIGSTOP = 19;
const GONE_TIMEOUT_MS = 5_000;
/** Processes that fork and end faster than they can be stopped are found sooner or later; this is later. */
const MOST_PASSES = 2_000;

/**
 * Kills these with all their descendants, and nothing else: first all are stopped, pass after pass until none is new, so that
 * none can fork while the others die. Tells whether nothing is left.
 */
export async function killTrees(findRoots: () => readonly HostProcess[]): Promise<boolean> {
  const stopped = new Map<number, HostProcess>();
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    const found = withDescendants(findRoots()).filter((process) => !isSame(stopped.get(process.pid), process));
    if (found.length === 0) return await killStopped([...stopped.values()]);
    for (const process of found) if (signalProcess(process, SIGSTOP)) stopped.set(process.pid, process);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return false;
}

/**
 * Stops a process with all its descendants: parents first, so that none sees its child stop, pass after pass until none runs.
 * Returns what lets them go on, children first; who was stopped before stays so.
 */
export async function stopTree(root: HostProcess): Promise<() => void> {
  const stopped = new Map<number, HostProcess>();
  const goOn = (): void => {
    for (const process of [...stopped.values()].reverse()) signalProcess(process, SIGCONT);
  };
  const deadline = performance.now() + FREEZING_PATIENCE_MS;
  for (let pauseMs = 0; performance.now() < deadline; pauseMs = Math.min(pauseMs + 1, 20)) {
    const moving = withDescendants([root]).filter((process) => {
      if (isStill(process.pid)) return false;
      return !isSame(stopped.get(process.pid), process) || !isOutOfReach(process.pid);
    });
    if (moving.length === 0) return goOn;
    for (const process of moving) if (signalProcess(process, SIGSTOP)) stopped.set(process.pid, process);
    await sleep(pauseMs);
  }
  goOn();
  throw tooBusyToFreeze();
}

async function killStopped(stopped: readonly HostProcess[]): Promise<boolean> {
  for (const process of stopped) signalProcess(process, SIGKILL);
  const gone = await Promise.all(stopped.map((process) => waitUntilGone(process, GONE_TIMEOUT_MS)));
  return gone.every(Boolean) && !stopped.some(isSameProcess);
}

function isSame(one: HostProcess | undefined, other: HostProcess): boolean {
  return one?.startTicks === other.startTicks;
}
