import { Errno, errnoName, syscalls } from "@agentfense/fuse";
import { type Delta, openDirectoryAt } from "../filesystem/delta.ts";
import { closing } from "../filesystem/descriptors.ts";
import { walkDirectory } from "../filesystem/directory-reader.ts";
import { withOwnRights } from "../filesystem/own-rights.ts";
import { atOnce, turn, type Walk } from "../filesystem/walks.ts";
import { isReserved, OPAQUE_MARKER, readDeltaDirectory, whiteoutFor } from "../filesystem/whiteouts.ts";
import { ChangesError } from "./changes-error.ts";
import { statOf } from "./comparison.ts";
import { LockedDelta } from "./places.ts";
import { Selection } from "./selection.ts";
import { pathText } from "./walk.ts";

const { FileType, Open } = syscalls;

export interface DiscardSpec {
  readonly delta: string;
  /** Only these, each with all that is below it; everything when absent. */
  readonly paths?: readonly string[] | undefined;
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
  return atOnce(discardFrom(locked.delta, spec.paths));
}

/** What a live workspace has to say about it. */
export interface DiscardWatch {
  /** Something at or below the path is open for writing. */
  isWritten(names: readonly string[]): boolean;
  /** The delta holds nothing of this path any more. */
  onGone(names: readonly string[]): Walk<void>;
  /** An entry, the same or one below it, takes no space there any more. */
  onRemoved(stat: syscalls.Stat): void;
}

const NOBODY: DiscardWatch = { isWritten: () => false, *onGone() {}, onRemoved() {} };

/** The same for a delta that is open. What is open for writing stays, and is reported as failed. */
export function* discardFrom(
  delta: Delta,
  paths: readonly string[] | undefined,
  watch: DiscardWatch = NOBODY,
): Walk<DiscardReport> {
  const named = Selection.of(paths).namedPaths();
  const discarding = new Discarding(delta, watch);
  if (paths === undefined || named.some(({ names }) => names.length === 0)) return yield* discarding.all();
  for (const { given, names } of named) requireChange(delta.tree, given, names);
  for (const { names } of named) yield* discarding.path(names);
  const { discarded, failed } = discarding;
  return { discarded, failed };
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

  *all(): Walk<DiscardReport> {
    yield* this.#content([]);
    return { discarded: ["/"], failed: this.failed };
  }

  *path(names: readonly string[]): Walk<void> {
    const before = this.failed.length;
    yield* this.#entry(names);
    if (this.failed.length === before) this.discarded.push(pathText(names));
  }

  *#entry(names: readonly string[]): Walk<void> {
    turn.entries += names.length;
    yield;
    if (!this.#watch.isWritten(names)) {
      const { taken, was } = discardEntry(this.#delta, names);
      if (typeof taken === "number" && taken < 0) {
        this.#fail(names, errnoName(-taken));
        return;
      }
      yield* this.#watch.onGone(names);
      if (was !== undefined) this.#watch.onRemoved(was);
      if (typeof taken === "string") yield* this.#delta.sweep(taken, this.#watch.onRemoved);
    } else if (isOpenDirectory(this.#delta.tree, names)) yield* this.#content(names);
    else this.#fail(names, "open for writing");
  }

  /** Everything in a directory, but not the directory. */
  *#content(names: readonly string[]): Walk<void> {
    const directory = openDirectoryAt(this.#delta.tree, names);
    using _open = closing(directory);
    const code = directory < 0 ? directory : yield* this.#contentOf(directory, names);
    if (code < 0) this.#fail(names, errnoName(-code));
  }

  *#contentOf(directory: number, names: readonly string[]): Walk<number> {
    const read = yield* readDeltaDirectory(directory);
    if (typeof read === "number") return read;
    for (const name of new Set([...read.names, ...read.whiteouts.keys()])) yield* this.#entry([...names, name]);
    // What was put aside, and marks that mean nothing.
    const rest: string[] = [];
    const listed = yield* walkDirectory(directory, (name) => {
      if (isReserved(name)) rest.push(name);
    });
    for (const name of rest) {
      turn.entries += 1;
      yield;
      const taken = removeEntry(this.#delta, directory, name);
      if (typeof taken === "string") yield* this.#delta.sweep(taken, this.#watch.onRemoved);
      else if (taken < 0) this.#fail([...names, name], errnoName(-taken));
    }
    return listed;
  }

  #fail(names: readonly string[], reason: string): void {
    this.failed.push({ path: pathText(names), reason });
  }
}

/** A directory that shows the codebase's beneath it, so that its entries can be discarded one by one. */
function isOpenDirectory(tree: number, names: readonly string[]): boolean {
  const directory = openDirectoryAt(tree, names);
  if (directory < 0) return false;
  const isShut = isThere(directory, OPAQUE_MARKER);
  syscalls.close(directory);
  return !isShut;
}

function isThere(directory: number, name: string): boolean {
  return statOf({ directory, name }) !== undefined;
}

/** Throws unless the delta has a change of its own at the path. */
function requireChange(tree: number, given: string, names: readonly string[]): void {
  let directory = syscalls.dup(tree);
  try {
    for (const [depth, name] of names.entries()) {
      // Where nothing of the codebase shows, removing an entry would not bring the original back but delete it.
      if (isThere(directory, OPAQUE_MARKER)) throw partOf(given, pathText(names.slice(0, depth)));
      const entry = statOf({ directory, name });
      const isDeleted = isThere(directory, whiteoutFor(name).name);
      if (depth === names.length - 1 && (entry !== undefined || isDeleted)) return;
      const isGone = entry === undefined ? isDeleted : entry.type !== FileType.DIRECTORY;
      if (isGone) throw partOf(given, pathText(names.slice(0, depth + 1)));
      const next = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
      if (next < 0) break;
      syscalls.close(directory);
      directory = next;
    }
  } finally {
    syscalls.close(directory);
  }
  throw new ChangesError("NO_CHANGE", `the delta changes nothing at ${given}`);
}

function partOf(given: string, whole: string): ChangesError {
  return new ChangesError(
    "PART_OF_REPLACED_DIRECTORY",
    `${given} is part of ${whole}, which was deleted or replaced; discard ${whole} as a whole`,
  );
}

/** Takes an entry out of the tree; what it was, and the result of removeEntry. */
function discardEntry(
  delta: Delta,
  names: readonly string[],
): { readonly taken: string | number; readonly was?: syscalls.Stat | undefined } {
  const directory = openDirectoryAt(delta.tree, names.slice(0, -1));
  if (directory < 0) return { taken: directory };
  using _open = closing(directory);
  const name = names.at(-1)!;
  // The whiteout first: it would delete the name the moment the entry goes.
  const code = removeEntry(delta, directory, whiteoutFor(name).name);
  if (typeof code === "number" && code < 0) return { taken: code };
  const was = statOf({ directory, name });
  return { taken: removeEntry(delta, directory, name), was };
}

/** Removes an entry with all below it, in one step: 0, a negated errno, or the name in `work` of a directory to sweep. */
function removeEntry(delta: Delta, directory: number, name: string): string | number {
  const stat = statOf({ directory, name });
  if (stat === undefined) return 0;
  const isDirectory = stat.type === FileType.DIRECTORY;
  const remove = (): string | number =>
    isDirectory ? delta.takeOut(directory, name) : syscalls.unlinkat(directory, name);
  const code = remove();
  return code === -Errno.EACCES ? withOwnRights(directory, remove) : code;
}
