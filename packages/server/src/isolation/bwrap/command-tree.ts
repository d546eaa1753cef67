import { type HostProcess, isSameProcess, signalProcess, waitUntilGone, withDescendants } from "./host-processes.ts";

const SIGKILL = 9;
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

async function killStopped(stopped: readonly HostProcess[]): Promise<boolean> {
  for (const process of stopped) signalProcess(process, SIGKILL);
  const gone = await Promise.all(stopped.map((process) => waitUntilGone(process, GONE_TIMEOUT_MS)));
  return gone.every(Boolean) && !stopped.some(isSameProcess);
}

function isSame(one: HostProcess | undefined, other: HostProcess): boolean {
  return one?.startTicks === other.startTicks;
}
