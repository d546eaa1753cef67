import { randomUUID } from "node:crypto";
import { check, Errno, syscalls } from "@agentfense/fuse";
import { closing } from "./descriptors.ts";
import { readDirectory, walkDirectory } from "./directory-reader.ts";
import { keepTimes, withOwnRights } from "./own-rights.ts";
import { turn, type Walk } from "./walks.ts";
import { isReserved, OPAQUE_MARKER, readSmallFile, whiteoutFor } from "./whiteouts.ts";

const { Open, AT_REMOVEDIR } = syscalls;

export const WORK_OF_HOME = ".wh..wh.work";
/** The parts of a delta. */
export const TREE_IN_DELTA = "tree";
export const HOME_IN_DELTA = "home";

/** Where a sandbox with this delta has its home, unless it is given another. */
export function homeIn(delta: string): string {
  return `${delta}/${HOME_IN_DELTA}`;
}

/** What the sandbox changed in its workspace. */
export function treeIn(delta: string): string {
  return `${delta}/${TREE_IN_DELTA}`;
}

/** A file under construction. */
export interface Draft {
  readonly fd: number;
  /** In `work`; undefined when it has no name at all. */
  readonly temporary: string | undefined;
}

/** Receives what stat said about an entry before it went. */
export type OnRemoved = (stat: syscalls.Stat) => void;

/**
 * The delta on disk.
 *
 *   <delta>/tree/   the layer itself (see whiteouts.ts)
 *   <delta>/home/   the home of a sandbox that was given no other, see below
 *   <delta>/work/   files under construction where the disk knows no nameless ones, directories on their way out, and records of what a crash would leave
 *                   undone; emptied when the delta is opened
 *
 * A home has no codebase below it: its directory is the tree, and `work` lies in it under a name that the sandbox can
 * neither see nor make.
 *
 * Nothing here touches a name in the tree before its replacement is complete: every step is one rename, or one link.
 */
export class Delta {
  readonly work: number;
  /** Held for as long as the delta is open: two writers would clear away each other's work. */
  readonly lock: number;
  readonly #stat = new syscalls.Stat();
  #tree: number;
  #sequence = 0;

  private constructor(tree: number, work: number, lock: number) {
    this.#tree = tree;
    this.work = work;
    this.lock = lock;
  }

  get tree(): number {
    return this.#tree;
  }

  /** What was written so far is frozen; from now on this is the tree. */
  continueIn(tree: number): void {
    syscalls.close(this.#tree);
    this.#tree = syscalls.dup(tree);
  }

  /**
   * Opens the delta in a directory and makes it if need be; recover() must follow. A new tree takes over owner, mode and times
   * of the codebase's root, as if that had been copied up.
   */
  static open(path: string, codebase: number | undefined): Delta {
    const root = check(`open the delta ${path}`, syscalls.open(path, Open.PATH | Open.DIRECTORY));
    using _open = closing(root);
    const isNew = syscalls.statat(root, "tree", new syscalls.Stat()) < 0;
    if (isNew) makeApart(root, { tree: 0o755, work: 0o700 });
    const delta = Delta.#lock(root, "work", openOrCreate(root, "tree", 0o755), `the delta ${path}`);
    if (isNew && codebase !== undefined) takeOver(codebase, delta.tree);
    return delta;
  }

  /** Opens a directory as a home; recover() must follow. */
  static openHome(path: string): Delta {
    const root = check(`open the home ${path}`, syscalls.open(path, Open.PATH | Open.DIRECTORY | Open.NOFOLLOW));
    return Delta.#lock(root, WORK_OF_HOME, root, `the home ${path}`);
  }

  static #lock(root: number, workName: string, tree: number, what: string): Delta {
    const work = openOrCreate(root, workName, 0o700);
    const lock = check("open work in the delta", syscalls.openat(root, workName, Open.RDONLY | Open.DIRECTORY));
    if (syscalls.tryLock(lock) >= 0) return new Delta(tree, work, lock);
    for (const fd of [tree, work, lock]) syscalls.close(fd);
    throw new Error(`${what} is in use by another mount`);
  }

  close(): void {
    for (const fd of [this.tree, this.work, this.lock]) syscalls.close(fd);
  }

  /** Nothing is in the tree. */
  isEmpty(): boolean {
    let found = false;
    readDirectory(this.tree, (name) => {
      found = name !== WORK_OF_HOME;
      return found;
    });
    return !found;
  }

  /** A name in `work` that nobody uses. */
  temporaryName(): string {
    this.#sequence += 1;
    return `tmp-${process.pid}-${this.#sequence}`;
  }

  /**
   * A new file for a directory of the tree, which gets its name when it is complete. It has none until then, and a disk keeps
   * the files of a directory together; a crash leaves nothing of it. A negated errno when it cannot be made.
   */
  begin(directory: number, mode: number): Draft | number {
    const nameless = syscalls.openat(directory, ".", Open.RDWR | Open.TMPFILE, mode);
    if (nameless >= 0) return { fd: nameless, temporary: undefined };
    // EISDIR: a file system that does not know what is asked for.
    if (-nameless !== Errno.EOPNOTSUPP && -nameless !== Errno.EISDIR) return nameless;
    const temporary = this.temporaryName();
    const fd = syscalls.openat(this.work, temporary, Open.RDWR | Open.CREAT | Open.EXCL, mode);
    return fd < 0 ? fd : { fd, temporary };
  }

  /** Gives a complete file its name. */
  install({ fd, temporary }: Draft, directory: number, name: string): number {
    if (temporary === undefined) return syscalls.linkDescriptor(fd, directory, name);
    return syscalls.renameat2(this.work, temporary, directory, name);
  }

  /** Removes a file that will not be complete; its descriptor is the caller's. */
  discard({ temporary }: Draft): void {
    if (temporary !== undefined) syscalls.unlinkat(this.work, temporary);
  }

  /** Marks a name of the layers below as deleted. Has no effect while the delta itself has that name. */
  layWhiteout(directory: number, name: string): number {
    const file = whiteoutFor(name);
    if (file.content === "") {
      const fd = syscalls.openat(directory, file.name, Open.WRONLY | Open.CREAT, 0o600);
      if (fd < 0) return fd;
      syscalls.close(fd);
      return 0;
    }
    const temporary = this.temporaryName();
    const written = this.#write(temporary, file.content);
    return written < 0 ? written : syscalls.renameat2(this.work, temporary, directory, file.name);
  }

  /** A new file in `work`. A negated errno when it cannot be made. */
  #write(name: string, text: string): number {
    const fd = syscalls.openat(this.work, name, Open.WRONLY | Open.CREAT | Open.EXCL, 0o600);
    if (fd < 0) return fd;
    const content = Buffer.from(text, "latin1");
    const written = syscalls.pwrite(fd, content, content.length, 0);
    syscalls.close(fd);
    return written;
  }

  liftWhiteout(directory: number, name: string): void {
    // A whiteout that stays behind is outranked by the entry: failing to lift it loses nothing.
    syscalls.unlinkat(directory, whiteoutFor(name).name);
  }

  /** Shuts a directory of the delta against the layers below; for the agent nothing in it has changed, so its time stays. */
  markOpaque(directory: number): number {
    using _times = keepTimes(directory);
    const create = (): number => syscalls.openat(directory, OPAQUE_MARKER, Open.WRONLY | Open.CREAT, 0o600);
    let fd = create();
    if (-fd === Errno.EACCES) fd = withOwnRights(directory, create);
    if (fd < 0) return fd;
    syscalls.close(fd);
    return 0;
  }

  /**
   * Puts a finished directory of `work` in its place, with this mode. Moving a directory needs the right to write it, so a
   * mode without that comes last.
   */
  installDirectory(temporary: string, parent: number, name: string, mode: number): number {
    const writable = mode | 0o700;
    let code = syscalls.chmodat(this.work, temporary, writable);
    if (code === 0) code = syscalls.renameat2(this.work, temporary, parent, name);
    if (code === 0 && mode !== writable) code = syscalls.chmodat(parent, name, mode);
    return code;
  }

  /** Takes a directory out of the tree in one step. Returns its name in `work`, for sweep(), or a negated errno. */
  takeOut(parent: number, name: string): string | number {
    const temporary = this.temporaryName();
    let code = syscalls.renameat2(parent, name, this.work, temporary);
    if (-code === Errno.EACCES && syscalls.chmodat(parent, name, 0o700) === 0) {
      code = syscalls.renameat2(parent, name, this.work, temporary);
    }
    return code < 0 ? code : temporary;
  }

  /**
   * Writes down that the directory with this inode, at this path of the tree, is to be removed: between an exchange of
   * two directories and the removal of the loser a crash would leave the loser under the winner's old name.
   */
  recordRemoval(path: string, inode: number): string | number {
    const record = `undo-${this.temporaryName()}`;
    const written = this.#write(record, `${inode}\n${path}`);
    return written < 0 ? written : record;
  }

  forgetRecord(record: string): void {
    syscalls.unlinkat(this.work, record);
  }

  /**
   * Removes something from `work` with all in it. Subdirectories are moved up into `work` before they are emptied, so the depth
   * of a tree costs neither stack nor descriptors. `onRemoved` gets what each entry in it was, but for bookkeeping.
   */
  *sweep(name: string, onRemoved?: OnRemoved): Walk<void> {
    const queue = [name];
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      turn.entries += 1;
      yield;
      const code = syscalls.unlinkat(this.work, next);
      if (code === 0 || -code === Errno.ENOENT) continue;
      if (syscalls.unlinkat(this.work, next, AT_REMOVEDIR) === 0) continue;
      const directory = syscalls.openat(this.work, next, Open.PATH | Open.DIRECTORY);
      if (directory < 0) continue;
      try {
        yield* this.#empty(directory, next, queue, onRemoved);
      } finally {
        syscalls.close(directory);
      }
      syscalls.unlinkat(this.work, next, AT_REMOVEDIR);
    }
  }

  /** Removes the files of a directory in `work`, and moves its directories up, onto the queue. */
  *#empty(directory: number, name: string, queue: string[], onRemoved: OnRemoved | undefined): Walk<void> {
    const children: string[] = [];
    const list = (): Walk<number> => walkDirectory(directory, (child) => void children.push(child));
    if ((yield* list()) < 0) {
      // Shut by its owner, who is us.
      syscalls.chmodat(this.work, name, 0o700);
      yield* list();
    }
    for (const child of children) {
      turn.entries += 1;
      yield;
      const isTold = onRemoved !== undefined && !isReserved(child);
      const isKnown = isTold && syscalls.statat(directory, child, this.#stat) === 0;
      const temporary = this.temporaryName();
      if (this.#moveUp(directory, name, child, temporary)) queue.push(temporary);
      if (isKnown) onRemoved(this.#stat);
    }
  }

  // Removes a file, or moves a directory up into `work`, which is then true. Modes stand in the way only of an ordinary user,
  // and are changed only then: somebody may still look at a removed directory through a descriptor.
  #moveUp(directory: number, name: string, child: string, temporary: string): boolean {
    for (const makeWay of [false, true]) {
      if (makeWay) {
        syscalls.chmodat(this.work, name, 0o700);
        syscalls.chmodat(directory, child, 0o700);
      }
      if (syscalls.unlinkat(directory, child) === 0) return false;
      if (syscalls.renameat2(directory, child, this.work, temporary) === 0) return true;
    }
    return false;
  }

  /** Finishes what a killed process had begun. */
  *recover(): Walk<void> {
    const leftovers: string[] = [];
    yield* walkDirectory(this.work, (name) => void leftovers.push(name));
    for (const name of leftovers) if (name.startsWith("undo-")) yield* this.#carryOut(name);
    for (const name of leftovers) yield* this.sweep(name);
  }

  *#carryOut(record: string): Walk<void> {
    const content = readSmallFile(this.work, record);
    const newline = content?.indexOf("\n") ?? -1;
    if (content === undefined || newline < 0) return;
    const inode = Number(content.slice(0, newline));
    const names = content.slice(newline + 1).split("/");
    const name = names.pop()!;
    const parent = openDirectoryAt(this.tree, names);
    if (parent < 0) return;
    const isIt = syscalls.statat(parent, name, this.#stat) === 0 && this.#stat.ino === inode;
    const taken = isIt ? this.takeOut(parent, name) : -1;
    syscalls.close(parent);
    if (typeof taken === "string") yield* this.sweep(taken);
  }
}

/** A descriptor of the directory at the end of these names, one step at a time: paths can be longer than the kernel takes. */
export function openDirectoryAt(root: number, names: readonly string[]): number {
  let directory = syscalls.dup(root);
  for (const name of names) {
    const next = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
    syscalls.close(directory);
    if (next < 0) return next;
    directory = next;
  }
  return directory;
}

// ext4 gives an inode number again only minutes after it was deleted, and at every new file steps over those that it may not
// give yet, first to last among the inodes near the directory: where another delta was just removed a new file takes ten times
// as long. So each delta is laid somewhere else, at a place that ext4 takes from the name that a directory is made with.
function makeApart(root: number, modes: Readonly<Record<string, number>>): void {
  const directory = syscalls.openat(root, ".", Open.RDONLY | Open.DIRECTORY);
  if (directory < 0) return;
  using _open = closing(directory);
  const changed = syscalls.setSpreading(directory, true);
  if (changed < 0) return;
  for (const [name, mode] of Object.entries(modes)) {
    const elsewhere = `${name}-${randomUUID()}`;
    if (syscalls.mkdirat(root, elsewhere, mode) < 0) continue;
    const code = syscalls.renameat2(root, elsewhere, root, name, syscalls.Rename.NOREPLACE);
    if (code < 0) syscalls.unlinkat(root, elsewhere, AT_REMOVEDIR);
  }
  if (changed > 0) syscalls.setSpreading(directory, false);
}

function takeOver(codebase: number, tree: number): void {
  const stat = new syscalls.Stat();
  if (syscalls.fstat(codebase, stat) < 0) return;
  syscalls.fchownat(tree, "", stat.uid, stat.gid);
  syscalls.chmodHeld(tree, stat.mode & 0o1777);
  syscalls.utimensat(tree, "", stat.mtime, stat.mtimeNs, stat.mtime, stat.mtimeNs);
}

function openOrCreate(root: number, name: string, mode: number): number {
  const created = syscalls.mkdirat(root, name, mode);
  if (created < 0 && -created !== Errno.EEXIST) check(`mkdir ${name} in the delta`, created);
  return check(`open ${name} in the delta`, syscalls.openat(root, name, Open.PATH | Open.DIRECTORY));
}
