import { Errno, errnoName, SystemError, syscalls } from "@agentfense/fuse";
import { Delta, treeIn } from "../filesystem/delta.ts";
import { bytesOf } from "../filesystem/names.ts";
import { atOnce } from "../filesystem/walks.ts";
import { ChangesError } from "./changes-error.ts";

const { Open, Stat } = syscalls;

/** A delta that nobody else has open, a live mount least of all. */
export class LockedDelta implements Disposable {
  readonly delta: Delta;

  constructor(path: string) {
    requireDelta(path);
    try {
      this.delta = Delta.open(bytesOf(path), undefined);
      atOnce(this.delta.recover());
    } catch (error) {
      if (error instanceof SystemError)
        throw new ChangesError("DELTA_UNUSABLE", `${path} cannot be used: ${error.message}`);
      if (!(error instanceof Error) || !error.message.includes("in use")) throw error;
      throw new ChangesError("DELTA_IN_USE", `the delta ${path} is in use: unmount the workspace first`);
    }
  }

  [Symbol.dispose](): void {
    this.delta.close();
  }
}

/**
 * The codebase, held by descriptor from the first look to the last change. The lock keeps a second apply out, which could
 * not tell the files under construction of this one from what a crash left behind.
 */
export class LockedCodebase implements Disposable {
  readonly root: number;

  constructor(path: string) {
    const fd = syscalls.open(bytesOf(path), Open.RDONLY | Open.DIRECTORY | Open.NOFOLLOW);
    if (fd < 0) throw unusable(path, -fd);
    if (syscalls.tryLock(fd) < 0) {
      syscalls.close(fd);
      throw new ChangesError("CODEBASE_IN_USE", `changes are being applied to ${path} already`);
    }
    this.root = fd;
  }

  [Symbol.dispose](): void {
    syscalls.close(this.root);
  }
}

export type Layers = Pick<OpenLayers, "trees" | "lowers">;

/** The layers of a delta, of what it lies on, and its codebases for reading. No lock; a live mount may go on. */
export class OpenLayers implements Disposable {
  /** The delta's first. */
  readonly trees: readonly number[];
  readonly lowers: readonly number[];

  constructor(delta: string, lowers: readonly string[], beneath: readonly string[] = []) {
    // One that was just laid on others has no tree yet.
    const isBare = beneath.length > 0 && !isDelta(delta);
    if (beneath.length === 0) requireDelta(delta);
    const own = isBare ? [] : [delta];
    const opened: number[] = [];
    try {
      for (const path of [...[...own, ...beneath].map(treeIn), ...lowers]) {
        const fd = syscalls.open(bytesOf(path), Open.PATH | Open.DIRECTORY | Open.NOFOLLOW);
        if (fd < 0) throw unusable(path, -fd);
        opened.push(fd);
      }
    } catch (error) {
      for (const fd of opened) syscalls.close(fd);
      throw error;
    }
    this.trees = opened.slice(0, own.length + beneath.length);
    this.lowers = opened.slice(own.length + beneath.length);
  }

  [Symbol.dispose](): void {
    for (const fd of [...this.trees, ...this.lowers]) syscalls.close(fd);
  }
}

// Opening a delta makes one where there is none, which a mistyped path should not do.
function requireDelta(path: string): void {
  if (!isDelta(path)) throw new ChangesError("NOT_A_DELTA", `there is no delta in ${path}`);
}

function isDelta(path: string): boolean {
  const root = syscalls.open(bytesOf(path), Open.PATH | Open.DIRECTORY);
  const found = root >= 0 && syscalls.statat(root, "tree", new Stat()) === 0;
  if (root >= 0) syscalls.close(root);
  return found;
}

function unusable(path: string, errno: number): ChangesError {
  const reason = errno === Errno.ENOTDIR || errno === Errno.ELOOP ? "not a directory, or a symlink" : errnoName(errno);
  return new ChangesError("CODEBASE_UNUSABLE", `${path} cannot be used: ${reason}`);
}
