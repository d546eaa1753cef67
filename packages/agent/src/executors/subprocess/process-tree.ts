import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

const ROUNDS_AT_MOST = 100;
const PAUSE_MS = 10;

/**
 * Kills a process group, and whatever has left it: children inherit the variable with the mark. Code that is SAFE
 * cannot start any; this is for the day when the assessment was wrong.
 */
export async function killTree(group: number, mark: string): Promise<void> {
  killGroup(group);
  for (let round = 0; round < ROUNDS_AT_MOST; round += 1) {
    const strays = await processesMarked(mark);
    if (strays.length === 0) return;
    for (const pid of strays) kill(pid);
    await delay(PAUSE_MS);
  }
}

export function killGroup(group: number): void {
  kill(-group);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function processesMarked(mark: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const isMarked = await Promise.all(pids.map(async (pid) => (await environmentOf(pid)).includes(mark)));
  return pids.filter((pid, index) => isMarked[index] && pid !== process.pid);
}

/** Empty of those that are gone, dead or somebody else's. */
async function environmentOf(pid: number): Promise<string> {
  return await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
}
