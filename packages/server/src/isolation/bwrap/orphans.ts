import { readdir } from "node:fs/promises";
import { commandLine, findProcess, signalProcess, waitUntilGone } from "./host-processes.ts";

const SIGKILL = 9;
const GONE_TIMEOUT_MS = 5_000;

/**
 * Every bwrap of an instance carries this as an argument, the box's process 1 too: it is a fork of bwrap. It names no path
 * and no box, for the box can read it.
 */
export function markerOf(instance: string): string {
  return `AGENTFENSE_${instance.replaceAll(/[^A-Za-z0-9_-]/g, "_")}`;
}

/**
 * Ends what servers left that died while a box was being set up: until that is done the box does not die with its bwrap.
 * Where there are control groups they are emptied as well; this is what finds such a box without them.
 */
export async function endOrphans(deadInstances: readonly string[]): Promise<void> {
  if (deadInstances.length === 0) return;
  const markers = new Set(deadInstances.map(markerOf));
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const orphans = pids
    .filter((pid) => pid !== process.pid && isOf(commandLine(pid), markers))
    .flatMap((pid) => findProcess(pid) ?? []);
  for (const orphan of orphans) signalProcess(orphan, SIGKILL);
  await Promise.all(orphans.map((orphan) => waitUntilGone(orphan, GONE_TIMEOUT_MS)));
}

/** `bwrap --unsetenv MARKER …`, or a helper of its network; never a program that was merely given the word by somebody. */
function isOf(words: readonly string[], markers: ReadonlySet<string>): boolean {
  const [program = "", option, word = ""] = words;
  const isOurs = option === "--unsetenv" || (/\/pasta(\.avx2)?$/.test(program) && option === "--search");
  return isOurs && markers.has(word);
}
