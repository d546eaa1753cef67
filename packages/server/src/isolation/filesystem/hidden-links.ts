import { LEVEL, type Policy, type Scope } from "@agentfense/permission";
import { DirentType, readDirectory } from "./directory-reader.ts";
import { type Subdirectory, walkDirectories } from "./directory-walk.ts";
import { textOf } from "./names.ts";
import { isReserved } from "./whiteouts.ts";

/**
 * How many hidden names each file of the delta has, by inode. A link count that included them would tell of them. The
 * sandbox cannot make a hidden name, nor touch one, so they come about only when rules change over an existing delta, and
 * the count then holds until the next change.
 */
export function countHiddenLinks(tree: number, policy: Policy): Map<number, number> {
  const counts = new Map<number, number>();
  if (!policy.root.mayHideBelow) return counts;
  walkDirectories(tree, policy.root, (directory, scope) => {
    const subdirectories: Subdirectory<Scope>[] = [];
    readDirectory(directory, (name, type, inode) => {
      if (isReserved(name)) return;
      const child = scope.child(textOf(name));
      if (type === DirentType.DIRECTORY) {
        if (child.level === LEVEL.none || child.mayHideBelow) subdirectories.push([name, child]);
      } else if (child.level === LEVEL.none) counts.set(inode, (counts.get(inode) ?? 0) + 1);
    });
    return subdirectories;
  });
  return counts;
}
