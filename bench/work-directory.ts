import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./client.ts";
import { unmountBelow } from "./mounts.ts";

const PREFIX = "agentfense-bench-";
const TMPFS_MAGIC = 0x0102_1994;

/** Everything a run writes; disposing of it unmounts what is still mounted inside and removes it. */
export interface WorkDirectory extends AsyncDisposable {
  readonly path: string;
  /** The path of a directory inside, whose name no other run uses. */
  at(name: string): string;
}

/**
 * ext4 is slow, twenty times and more, to make files where many were removed in the last minutes, and a run ends by
 * removing all it made. So the next one keeps away from there: ext4 spreads the directories inside one with the T attribute
 * over the disk, by a hash of their names, which therefore differ from run to run. Other file systems have no such attribute.
 */
export async function makeWorkDirectory(parent: string, say: (line: string) => void): Promise<WorkDirectory> {
  await removeAbandoned(parent, say);
  const path = await mkdtemp(join(parent, `${PREFIX}${process.pid}-`));
  // The ordinary user has to get through it to its mount.
  await chmod(path, 0o755);
  await run(["chattr", "+T", path], { pinned: false }).catch(() => undefined);
  const suffix = path.slice(-6);
  return { path, at: (name) => join(path, `${name}-${suffix}`), [Symbol.asyncDispose]: () => clear(path) };
}

export async function isMemory(directory: string): Promise<boolean> {
  return (await statfs(directory)).type === TMPFS_MAGIC;
}

/** A run that was killed could not clean up; the next one does. */
async function removeAbandoned(parent: string, say: (line: string) => void): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    say("removing what an earlier, killed run left behind");
    await clear(join(parent, name));
  }
}

async function clear(path: string): Promise<void> {
  await unmountBelow(path);
  // Hundreds of thousands of files: rm(1) is several times as fast as a loop here.
  await run(["rm", "-rf", "--one-file-system", path], { pinned: false });
}
