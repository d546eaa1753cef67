import { Errno, syscalls } from "@agentfense/fuse";
import { ownRights } from "./own-rights.ts";

const { Open } = syscalls;

/** A directory to go into, and what the visit of the one above it has to say about it. */
export type Subdirectory<T> = readonly [name: string, value: T];

interface Level<T> {
  readonly inode: number;
  readonly rest: Subdirectory<T>[];
}

/**
 * Visits a directory and those below that the visits name. An agent may have made any number of them at any depth, so the
 * way back up goes through "..", and never more than two of them are open. Mode bits are no obstacle: the server owns what
 * is in a delta. A directory that is moved meanwhile, which only happens in the delta of a live workspace that another
 * thread looks at, ends the walk.
 */
export function walkDirectories<T>(
  top: number,
  value: T,
  visit: (directory: number, value: T) => Subdirectory<T>[],
): void {
  const above: Level<T>[] = [];
  let directory = syscalls.dup(top);
  try {
    let rest = withRights(directory, () => visit(directory, value));
    for (;;) {
      const next = rest.pop();
      const into = next === undefined ? ".." : next[0];
      if (next === undefined && above.length === 0) return;
      const entered = withRights(directory, () => syscalls.openat(directory, into, Open.PATH | Open.DIRECTORY));
      if (entered < 0) {
        if (next !== undefined && (-entered === Errno.ENOENT || -entered === Errno.ENOTDIR)) continue;
        throw new Error(`a directory of a delta cannot be opened: errno ${-entered}`);
      }
      const left = inodeOf(directory);
      syscalls.close(directory);
      directory = entered;
      if (next !== undefined) {
        above.push({ inode: left, rest });
        rest = withRights(directory, () => visit(directory, next[1]));
      } else {
        const level = above.pop()!;
        if (inodeOf(directory) !== level.inode) return;
        rest = level.rest;
      }
    }
  } finally {
    if (directory >= 0) syscalls.close(directory);
  }
}

function withRights<R>(directory: number, run: () => R): R {
  using _rights = ownRights(directory);
  return run();
}

function inodeOf(directory: number): number {
  const stat = new syscalls.Stat();
  return syscalls.fstat(directory, stat) < 0 ? -1 : stat.ino;
}
