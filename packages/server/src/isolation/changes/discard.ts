import { Errno, errnoName, syscalls } from "@agentfense/fuse";
import type { Delta } from "../filesystem/delta.ts";
import { readDeltaDirectory } from "../filesystem/delta-directory.ts";
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
  using locked = new LockedDelta(spec.delta);
  return discardFrom(locked.delta, spec.paths);
}

/** What a live workspace has to say about it. */
export interface DiscardWatch {
  /** Something at or below the path is open for writing. */
  isWritten(names: readonly string[]): boolean;
  /** The delta holds nothing of this path any more. */
  onGone(names: readonly string[]): void;
}

const NOBODY: DiscardWatch = { isWritten: () => false, onGone: () => {} };

/** The same for a delta that is open, without waiting. What is open for writing stays, and is reported as failed. */
export function discardFrom(
  delta: Delta,
  paths: readonly string[] | undefined,
  watch: DiscardWatch = NOBODY,
): DiscardReport {
  const named = Selection.of(paths).namedPaths();
  const discarding = new Discarding(delta, watch);
  if (paths === undefined || named.some(({ names }) => names.length === 0)) return discarding.all();
  for (const { given, names } of named) requireChange(delta.tree, given, names);
  for (const { names } of named) discarding.path(names);
  return discarding;
}

class Discarding implements DiscardReport {
  readonly discarded: string[] = [];
  readonly failed: { path: string; reason: string }[] = [];
  readonly #delta: Delta;
  readonly #watch: DiscardWatch;

  constructor(delta: Delta, watch: DiscardWatch) {
    this.#delta = delta;
    this.#watch = watch;
  }

  all(): DiscardReport {
    this.#content([]);
    return { discarded: ["/"], failed: this.failed };
  }

  path(names: readonly string[]): void {
    const before = this.failed.length;
    this.#entry(names);
    if (this.failed.length === before) this.discarded.push(pathText(names));
  }

  #entry(names: readonly string[]): void {
    if (!this.#watch.isWritten(names)) {
      const code = discardEntry(this.#delta, names);
      if (code < 0) this.#fail(names, errnoName(-code));
      else this.#watch.onGone(names);
    } else if (isOpenDirectory(this.#delta.tree, names)) this.#content(names);
    else this.#fail(names, "open for writing");
  }

  /** Everything in a directory, but not the directory. */
  #content(names: readonly string[]): void {
    const code = inDirectory(this.#delta.tree, [...names, "."], (directory) => {
      const read = readDeltaDirectory(directory);
      if (typeof read === "number") return read;
      for (const name of new Set([...read.names, ...read.whiteouts.keys()])) this.#entry([...names, name]);
      // What was put aside, and marks that mean nothing.
      const rest: string[] = [];
      const listed = readDirectory(directory, (name) => {
        if (isReserved(name)) rest.push(name);
      });
      for (const name of rest) {
        const removed = removeEntry(this.#delta, directory, name);
        if (removed < 0) this.#fail([...names, name], errnoName(-removed));
      }
      return listed;
    });
    if (code < 0) this.#fail(names, errnoName(-code));
  }

  #fail(names: readonly string[], reason: string): void {
    this.failed.push({ path: pathText(names), reason });
  }
}

/** A directory that shows the codebase's beneath it, so that its entries can be discarded one by one. */
function isOpenDirectory(tree: number, names: readonly string[]): boolean {
  const code = inDirectory(tree, [...names, "."], (directory) =>
    statOf({ directory, name: OPAQUE_MARKER }) === undefined ? 1 : 0,
  );
  return code === 1;
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
      const next = names[depth];
      if (next === undefined || depth === names.length - 1) return;
      const entry = statOf({ directory, name: next });
      const isGone =
        entry === undefined ? isThere(directory, whiteoutFor(next).name) : entry.type !== FileType.DIRECTORY;
      if (isGone) throw partOf(given, pathText(names.slice(0, depth + 1)));
    },
  );
  if (found !== 1) throw new ChangesError("NO_CHANGE", `the delta changes nothing at ${given}`);
}

function partOf(given: string, whole: string): ChangesError {
  return new ChangesError(
    "PART_OF_REPLACED_DIRECTORY",
    `${given} is part of ${whole}, which was deleted or replaced; discard ${whole} as a whole`,
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
