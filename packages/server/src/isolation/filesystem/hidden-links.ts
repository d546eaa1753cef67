import { LEVEL, type Policy, type Scope } from "@agentfense/permission";
import { KEPT_PREFIX } from "./delta-directory.ts";
import { DirentType, walkDirectory } from "./directory-reader.ts";
import { type Subdirectory, walkDirectories } from "./directory-walk.ts";
import { textOf } from "./names.ts";
import type { Walk } from "./walks.ts";
import { isReserved } from "./whiteouts.ts";

/** Instead of rules, for all that is below what was put aside: none of it is ever shown. */
const PUT_ASIDE = "put aside";

/**
 * How many hidden names each file of the delta has, by inode. A link count that included them would tell of them. The
 * sandbox cannot make a hidden name, nor touch one, so they come about only when rules change over an existing delta, and
 * the count then holds until the next change.
 */
export type HiddenLinks = ReadonlyMap<number, number>;

export function* countHiddenLinks(tree: number, policy: Policy): Walk<HiddenLinks> {
  const counts = new Map<number, number>();
  if (!policy.root.mayHideBelow) return counts;
  yield* walkDirectories<Scope | typeof PUT_ASIDE>(tree, policy.root, function* (directory, scope) {
    const subdirectories: Subdirectory<Scope | typeof PUT_ASIDE>[] = [];
    yield* walkDirectory(directory, (name, type, inode) => {
      const isKept = name.startsWith(KEPT_PREFIX);
      if (isReserved(name) && !isKept) return;
      const child = scope === PUT_ASIDE || isKept ? PUT_ASIDE : scope.child(textOf(name));
      const isHidden = child === PUT_ASIDE || child.level === LEVEL.none;
      if (type === DirentType.DIRECTORY) {
        if (isHidden || child.mayHideBelow) subdirectories.push([name, child]);
      } else if (isHidden) counts.set(inode, (counts.get(inode) ?? 0) + 1);
    });
    return subdirectories;
  });
  return counts;
}
