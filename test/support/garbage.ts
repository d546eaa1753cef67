import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");

/** Frees what nothing refers to any more, so that a test counts what is held and not what has not been collected yet. */
export const collectGarbage = runInNewContext("gc") as () => void;

/** Bytes that this process holds, buffers included. */
export function heldBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** How much more this process holds at most while something runs, of what a look now and then sees. */
export async function growthDuring(work: () => Promise<unknown>): Promise<number> {
  const before = heldBytes();
  let most = before;
  const sampler = setInterval(() => {
    most = Math.max(most, heldBytes());
  }, 50);
  await work();
  clearInterval(sampler);
  return Math.max(most, heldBytes()) - before;
}
