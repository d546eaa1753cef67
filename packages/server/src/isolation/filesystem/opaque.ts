import { Errno, syscalls } from "@agentfense/fuse";
import type { Delta } from "./delta.ts";
import { readDirectory, walkDirectory } from "./directory-reader.ts";
import { withOwnRights } from "./own-rights.ts";
import { turn, type Walk } from "./walks.ts";
import { OPAQUE_MARKER } from "./whiteouts.ts";

const { FileType, Open, Stat } = syscalls;

/** Removes a name from a directory of the delta, whatever mode its owner gave it. 0 also when there is none, or a negated errno. */
export function removeName(directory: number, name: string, flags = 0): number {
  let code = syscalls.unlinkat(directory, name, flags);
  if (-code === Errno.EACCES) code = withOwnRights(directory, () => syscalls.unlinkat(directory, name, flags));
  return -code === Errno.ENOENT ? 0 : code;
}

/** Every name in some directories; one that several have comes several times. */
export function namesIn(directories: readonly number[]): string[] {
  const names: string[] = [];
  for (const directory of directories) readDirectory(directory, (name) => names.push(name));
  return names;
}

/**
 * Says the same as the mark that shuts a directory against the codebase, name by name, so that single names can leave: a
 * whiteout for each name of the codebase that the delta lacks, and the mark on each directory below that would begin to
 * merge. All of that has no effect until the mark is lifted. 0 or a negated errno.
 */
export function* dissolveOpaque(
  delta: Delta,
  directory: number,
  lowers: readonly number[],
  names: ReadonlySet<string>,
): Walk<number> {
  const below = new Set<string>();
  for (const lower of lowers) yield* walkDirectory(lower, (name) => void below.add(name));
  for (const name of below) {
    turn.entries += 1;
    yield;
    const code = names.has(name) ? shut(delta, directory, lowers, name) : delta.layWhiteout(directory, name);
    if (code < 0) return code;
  }
  return removeName(directory, OPAQUE_MARKER);
}

function shut(delta: Delta, directory: number, lowers: readonly number[], name: string): number {
  if (!isDirectory(directory, name) || !lowers.some((lower) => isDirectory(lower, name))) return 0;
  const fd = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
  if (fd < 0) return fd;
  const code = delta.markOpaque(fd);
  syscalls.close(fd);
  return code;
}

function isDirectory(directory: number, name: string): boolean {
  const stat = new Stat();
  return syscalls.statat(directory, name, stat) === 0 && stat.type === FileType.DIRECTORY;
}
