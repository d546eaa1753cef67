import { Errno, syscalls } from "@agentfense/fuse";
import { LEVEL, type Policy, type Scope } from "@agentfense/permission";
import { openDirectoryAt } from "./delta.ts";
import { DirentType, walkDirectory } from "./directory-reader.ts";
import { textOf } from "./names.ts";
import { ownRights } from "./own-rights.ts";
import type { Walk } from "./walks.ts";
import { isReserved, KEPT_PREFIX } from "./whiteouts.ts";

const { Open } = syscalls;

/** A directory to go into, and what the visit of the one above it has to say about it. */
export type Subdirectory<T> = readonly [name: string, value: T];

interface Level<T> {
  readonly name: string;
  readonly inode: number;
  readonly rest: Subdirectory<T>[];
}

/**
 * Visits a directory and those below that the visits name. An agent may have made any number of them at any depth, so the
 * way back up goes through "..", and never more than two of them are open. Mode bits are no obstacle: the server owns what
 * is in a delta. What is moved away in a pause is left out from there on.
 */
export function* walkDirectories<T>(
  top: number,
  value: T,
  visit: (directory: number, value: T) => Walk<Subdirectory<T>[]>,
): Walk<void> {
  const above: Level<T>[] = [];
  let directory = syscalls.dup(top);
  let name = "";
  try {
    let rest = yield* visitWithRights(directory, value, visit);
    for (;;) {
      yield;
      const next = rest.pop();
      if (next === undefined) {
        const up = goUp(top, directory, above);
        if (up === undefined) return;
        syscalls.close(directory);
        ({ directory, name, rest } = up);
        continue;
      }
      const entered = openWithRights(directory, next[0]);
      if (-entered === Errno.ENOENT || -entered === Errno.ENOTDIR) continue;
      if (entered < 0) throw new Error(`a directory of a delta cannot be opened: errno ${-entered}`);
      above.push({ name, inode: inodeOf(directory), rest });
      syscalls.close(directory);
      [directory, name] = [entered, next[0]];
      rest = yield* visitWithRights(directory, next[1], visit);
    }
  } finally {
    syscalls.close(directory);
  }
}

/** The nearest directory on the way back that is where it was; undefined when all is done. */
function goUp<T>(
  top: number,
  from: number,
  above: Level<T>[],
): { readonly directory: number; readonly name: string; readonly rest: Subdirectory<T>[] } | undefined {
  let directory = above.length === 0 ? -1 : openWithRights(from, "..");
  for (let level = above.pop(); level !== undefined; level = above.pop()) {
    if (directory >= 0 && inodeOf(directory) === level.inode) return { directory, ...level };
    if (directory >= 0) syscalls.close(directory);
    const names = above.slice(1).map((each) => each.name);
    directory = above.length === 0 ? -1 : openDirectoryAt(top, names);
  }
  if (directory >= 0) syscalls.close(directory);
  return undefined;
}

function* visitWithRights<T>(
  directory: number,
  value: T,
  visit: (directory: number, value: T) => Walk<Subdirectory<T>[]>,
): Walk<Subdirectory<T>[]> {
  using _rights = ownRights(directory);
  return yield* visit(directory, value);
}

function openWithRights(directory: number, name: string): number {
  using _rights = ownRights(directory);
  return syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
}

function inodeOf(directory: number): number {
  const stat = new syscalls.Stat();
  return syscalls.fstat(directory, stat) < 0 ? -1 : stat.ino;
}

/** Instead of rules, for all that is below what was put aside: none of it is ever shown. */
const PUT_ASIDE = "put aside";

/**
 * How many hidden names each file of the delta has, by inode. A link count that included them would tell of them. The
 * sandbox cannot make a hidden name, nor touch one, so they come about only when rules change over an existing delta, and
 * the count then holds until the next change.
 */
export type HiddenLinks = Map<number, number>;

export function* countHiddenLinks(tree: number, policy: Policy, counts: HiddenLinks = new Map()): Walk<HiddenLinks> {
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

/** The names of a file in a layer, rules aside: at most so many are looked for. */
export function* namesOfInode(tree: number, inode: number, most: number): Walk<readonly (readonly string[])[]> {
  const found: (readonly string[])[] = [];
  yield* walkDirectories<readonly string[]>(tree, [], function* (directory, path) {
    const below: Subdirectory<readonly string[]>[] = [];
    if (found.length >= most) return below;
    yield* walkDirectory(directory, (name, type, ino) => {
      if (isReserved(name)) return;
      if (type === DirentType.DIRECTORY) below.push([name, [...path, name]]);
      else if (ino === inode) found.push([...path, name]);
    });
    return found.length >= most ? [] : below;
  });
  return found;
}
