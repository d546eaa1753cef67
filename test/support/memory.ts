import { readFileSync, statfsSync } from "node:fs";

const PLACE = "/dev/shm";
/** All tests at once hold a small part of it. */
const ENOUGH_BYTES = 4 * 1024 ** 3;

/**
 * For the environment of tests that make many files and are not about the file system below: in memory that takes a
 * fraction of the time of a disk with a journal. Nothing, and so the usual place, where memory does not do for it, as in
 * most containers.
 */
export function filesInMemory(): { readonly TMPDIR?: string } {
  const options =
    readFileSync("/proc/self/mounts", "utf8")
      .match(/^\S+ \/dev\/shm tmpfs (\S+)/m)?.[1]
      ?.split(",") ?? [];
  if (!options.includes("rw") || options.includes("noexec")) return {};
  const { bavail, bsize } = statfsSync(PLACE);
  const [, freeKib = "0"] = readFileSync("/proc/meminfo", "utf8").match(/^MemAvailable:\s+(\d+) kB$/m) ?? [];
  return Math.min(bavail * bsize, Number(freeKib) * 1024) >= ENOUGH_BYTES ? { TMPDIR: PLACE } : {};
}
