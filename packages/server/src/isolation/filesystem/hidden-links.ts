import { syscalls } from "@agentfense/fuse";
import { LEVEL, type Policy, type Scope } from "@agentfense/permission";
import { DirentType, readDirectory } from "./directory-reader.ts";
import { textOf } from "./names.ts";
import { isReserved } from "./whiteouts.ts";

const { Open } = syscalls;

/**
 * How many hidden names each file of the delta has, by inode. A link count that included them would tell of them. The
 * sandbox cannot make a hidden name, nor touch one, so they come about only when rules change over an existing delta, and
 * the count then holds until the next change.
 */
export function countHiddenLinks(tree: number, policy: Policy): Map<number, number> {
  const counts = new Map<number, number>();
  const queue: { fd: number; scope: Scope }[] = [];
  if (policy.root.mayHideBelow) queue.push({ fd: syscalls.dup(tree), scope: policy.root });
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const { fd, scope } = next;
    const subdirectories: [string, Scope][] = [];
    readDirectory(fd, (name, type, inode) => {
      if (isReserved(name)) return;
      const child = scope.child(textOf(name));
      if (type === DirentType.DIRECTORY) {
        if (child.level === LEVEL.none || child.mayHideBelow) subdirectories.push([name, child]);
      } else if (child.level === LEVEL.none) counts.set(inode, (counts.get(inode) ?? 0) + 1);
    });
    for (const [name, child] of subdirectories) {
      const directory = syscalls.openat(fd, name, Open.PATH | Open.DIRECTORY);
      if (directory >= 0) queue.push({ fd: directory, scope: child });
    }
    syscalls.close(fd);
  }
  return counts;
}
