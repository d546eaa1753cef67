import { Errno, errnoName, syscalls } from "@agentfense/fuse";
import type { Delta } from "../filesystem/delta.ts";
import { readDirectory } from "../filesystem/directory-reader.ts";
import { withOwnRights } from "../filesystem/own-rights.ts";
import { isReserved, OPAQUE_MARKER, whiteoutFor } from "../filesystem/whiteouts.ts";
import { statOf } from "./comparison.ts";
import { ChangesError } from "./errors.ts";
import { LockedDelta } from "./places.ts";
import { Selection } from "./selection.ts";
import { pathText } from "./walk.ts";

const { FileType, Open } = syscalls;

export interface DiscardSpec {
  readonly delta: string;
  /** Only these, each with all that is below it; everything when absent. */
  readonly paths?: readonly string[];
}

export interface DiscardReport {
  /** Paths whose change is gone; `/` for the whole delta. */
  readonly discarded: readonly string[];
  readonly failed: readonly { readonly path: string; readonly reason: string }[];
}

/**
 * Removes changes from a delta, so that the codebase shows again. Without a codebase to look at, an entry that was only
 * copied up counts as a change. A path without one is an error, and nothing is done.
 */
export async function discardChanges(spec: DiscardSpec): Promise<DiscardReport> {
  const selection = Selection.of(spec.paths);
  using locked = new LockedDelta(spec.delta);
  const { delta } = locked;
  const named = selection.namedPaths();
  if (spec.paths === undefined || named.some(({ names }) => names.length === 0)) return discardAll(delta);
  for (const { given, names } of named) requireChange(delta.tree, given, names);
  const discarded: string[] = [];
  const failed: { path: string; reason: string }[] = [];
  for (const { names } of named) {
    const code = discardEntry(delta, names);
    if (code < 0) failed.push({ path: pathText(names), reason: errnoName(-code) });
    else discarded.push(pathText(names));
  }
  return { discarded, failed };
}

function discardAll(delta: Delta): DiscardReport {
  const names: string[] = [];
  const read = readDirectory(delta.tree, (name) => names.push(name));
  const failed = read < 0 ? [{ path: "/", reason: errnoName(-read) }] : [];
  // Whiteouts first: one beside an entry would delete the name the moment the entry goes.
  for (const name of names.sort((a, b) => Number(isReserved(b)) - Number(isReserved(a)))) {
    const code = removeEntry(delta, delta.tree, name);
    if (code < 0) failed.push({ path: pathText([name]), reason: errnoName(-code) });
  }
  return { discarded: ["/"], failed };
}

/**
 * Walks down to the delta's directory of an entry and calls with it and the name. `onTheWay` sees every directory passed,
 * the last included, with its depth. A negated errno when there is no such directory.
 */
function inDirectory(
  tree: number,
  names: readonly string[],
  use: (directory: number, name: string) => number,
  onTheWay?: (directory: number, depth: number) => void,
): number {
  let directory = syscalls.dup(tree);
  try {
    onTheWay?.(directory, 0);
    for (const [index, name] of names.slice(0, -1).entries()) {
      const next = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
      if (next < 0) return next;
      syscalls.close(directory);
      directory = next;
      onTheWay?.(directory, index + 1);
    }
    return use(directory, names.at(-1)!);
  } finally {
    syscalls.close(directory);
  }
}

function requireChange(tree: number, given: string, names: readonly string[]): void {
  const isThere = (directory: number, name: string): boolean => statOf({ directory, name }) !== undefined;
  const found = inDirectory(
    tree,
    names,
    (directory, name) => (isThere(directory, name) || isThere(directory, whiteoutFor(name).name) ? 1 : 0),
    (directory, depth) => {
      // Where nothing of the codebase shows, removing an entry would not bring the original back but delete it.
      if (isThere(directory, OPAQUE_MARKER)) throw partOf(given, pathText(names.slice(0, depth)));
    },
  );
  if (found !== 1) throw new ChangesError("NO_CHANGE", `the delta changes nothing at ${given}`);
}

function partOf(given: string, whole: string): ChangesError {
  return new ChangesError(
    "PART_OF_REPLACED_DIRECTORY",
    `${given} is part of ${whole}, which was deleted and made anew; discard ${whole} as a whole`,
  );
}

function discardEntry(delta: Delta, names: readonly string[]): number {
  return inDirectory(delta.tree, names, (directory, name) => {
    // The whiteout first: it would delete the name the moment the entry goes.
    const code = removeEntry(delta, directory, whiteoutFor(name).name);
    return code < 0 ? code : removeEntry(delta, directory, name);
  });
}

/** Removes an entry with all below it, in one step. */
function removeEntry(delta: Delta, directory: number, name: string): number {
  const stat = statOf({ directory, name });
  if (stat === undefined) return 0;
  const isDirectory = stat.type === FileType.DIRECTORY;
  const remove = (): number =>
    isDirectory ? delta.discardDirectory(directory, name) : syscalls.unlinkat(directory, name);
  const code = remove();
  return -code === Errno.EACCES ? withOwnRights(directory, remove) : code;
}
