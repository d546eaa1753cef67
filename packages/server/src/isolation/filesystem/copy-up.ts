import assert from "node:assert";
import { Errno, syscalls } from "@agentfense/fuse";
import type { Delta, Draft } from "./delta.ts";
import { onlyRegular } from "./descriptors.ts";
import { namesOfInode } from "./directory-walk.ts";
import { NAMELESS_LAYERS, type Node } from "./node.ts";
import { keepTimes, withOwnRights } from "./own-rights.ts";
import type { Presentation } from "./presentation.ts";
import { type Quota, wholeBlocks } from "./quota.ts";
import { MORE, Transfer } from "./transfer.ts";
import type { Tree } from "./tree.ts";
import { turn, type Walk, type Walks } from "./walks.ts";
import { isReserved } from "./whiteouts.ts";
import { copyUserXattrs, markCopy } from "./xattrs.ts";

const { FileType, Open } = syscalls;

/** Up to here a file is copied within the request; larger ones in slices, so that other clients are served meanwhile. */
const AT_ONCE = 4 << 20;
const SLICE = 8 << 20;
/** Large files that are being copied at a time; each takes two descriptors. */
const COPIES_AT_ONCE = 16;

export interface CopyUpOptions {
  readonly tree: Tree;
  readonly delta: Delta;
  readonly presentation: Presentation;
  readonly quota: Quota | undefined;
  readonly walks: Walks;
}

/**
 * Brings entries of the codebase into the delta before they change. The copy is made without its name, with owner, mode,
 * times and user.* attributes, and then gets it: a crash leaves the old state or the new one. The times of
 * the directory it appears in are put back, for to the sandbox nothing happened there.
 */
export class CopyUp {
  readonly #tree: Tree;
  readonly #delta: Delta;
  readonly #options: CopyUpOptions;
  /** The walks of those that are under way. */
  readonly #copies = new Set<string>();
  readonly #stat = new syscalls.Stat();

  constructor(options: CopyUpOptions) {
    this.#tree = options.tree;
    this.#delta = options.delta;
    this.#options = options;
  }

  /** Makes sure that a directory exists in the delta. Its descriptor there, or a negated errno. */
  directory(node: Node): number {
    const missing: Node[] = [];
    for (let each = node; !each.inDelta; each = each.parent) {
      if (each.removed || each.parent === undefined) return -Errno.ENOENT;
      missing.push(each);
    }
    for (let i = missing.length - 1; i >= 0; i--) {
      const code = this.#directory(missing[i]!);
      if (code < 0) return code;
    }
    return this.#tree.descriptors.get(node, this.#tree.stack.top);
  }

  /**
   * Makes sure that a file (or link, fifo, socket) is in the delta; `empty` leaves its content behind, for a truncating
   * open; `keepsOpen` leaves the descriptor of a copy that was made at once in the node, for who opens it. 0 or a positive errno.
   */
  file(node: Node, options: { empty: boolean; keepsOpen?: boolean }): number {
    if (node.inDelta) return 0;
    if (node.parent === undefined && !isHeld(node)) return this.#namelessPipe(node);
    // Its copy in the delta would be read as a whiteout.
    if (isReserved(node.name)) return Errno.EPERM;
    const key = `copy ${node.id}`;
    if (this.#options.walks.isWaitedFor(key)) return this.#options.walks.result(key, () => assert.fail());
    if (this.#copies.size >= COPIES_AT_ONCE) for (const other of this.#copies) this.#options.walks.wait(other);
    const directory = node.parent === undefined ? this.#delta.work : this.directory(node.parent);
    if (directory < 0) return -directory;
    if (!node.isRegular) return this.#special(node, key, directory);
    return this.#regular(node, key, directory, options);
  }

  // What the sandbox made and may not read itself is as much in its own server's way, unless that is root's.
  #openSource(node: Node, stat: syscalls.Stat): number {
    if (node.parent === undefined) return onlyRegular(syscalls.dup(node.fd), Errno.ESTALE, stat);
    const parent = this.#tree.descriptors.get(node.parent, node.layer);
    if (parent < 0) return parent;
    const open = (): number => syscalls.openat(parent, node.name, Open.RDONLY | Open.NONBLOCK);
    let opened = open();
    if (-opened === Errno.EACCES && node.isOwn) {
      const held = syscalls.openat(parent, node.name, Open.PATH);
      if (held >= 0) opened = withOwnRights(held, open);
      if (held >= 0) syscalls.close(held);
    }
    return onlyRegular(opened, Errno.ESTALE, stat);
  }

  #directory(node: Node): number {
    if (isReserved(node.name)) return -Errno.EPERM;
    const { descriptors } = this.#tree;
    const parent = descriptors.get(node.parent!, this.#tree.stack.top);
    const source = descriptors.get(node, node.layer);
    if (parent < 0 || source < 0) return Math.min(parent, source);
    const stat = this.#stat;
    const code = syscalls.fstat(source, stat);
    if (code < 0) return code;
    return this.#counted(() => this.#makeDirectory(node, parent, source, stat));
  }

  #makeDirectory(node: Node, parent: number, source: number, stat: syscalls.Stat): number {
    const temporary = this.#delta.temporaryName();
    let code = syscalls.mkdirat(this.#delta.work, temporary, 0o700);
    if (code < 0) return code;
    const fd = syscalls.openat(this.#delta.work, temporary, Open.PATH | Open.DIRECTORY);
    if (fd < 0) return fd;
    syscalls.fchownat(fd, "", stat.uid, stat.gid);
    copyUserXattrs(source, fd);
    const hidesTimes = !node.isOfMount && this.#tree.scopeOf(node).mayHideBelow && stat.btime !== 0;
    const seconds = hidesTimes ? stat.btime : stat.mtime;
    const nanoseconds = hidesTimes ? stat.btimeNs : stat.mtimeNs;
    syscalls.utimensat(fd, "", seconds, nanoseconds, seconds, nanoseconds);
    const copy = new syscalls.Stat();
    code = syscalls.fstat(fd, copy);
    syscalls.close(fd);
    if (code < 0) return code;
    const mode = stat.mode & 0o1777;
    using _times = keepTimes(parent);
    code = this.#delta.installDirectory(temporary, parent, node.name, mode);
    if (code < 0) return code;
    if (!node.hasCodebase) this.#tree.inodes.keep(copy.ino, node.ino);
    node.layers = [this.#tree.stack.top, ...node.layers];
    node.deltaInode = copy.ino;
    node.whiteouts = new Set();
    return 0;
  }

  #special(node: Node, key: string, directory: number): number {
    const source = node.parent === undefined ? -Errno.ESTALE : this.#tree.descriptors.get(node.parent, node.layer);
    if (source < 0) return -source;
    const stat = new syscalls.Stat();
    const code = syscalls.statat(source, node.name, stat);
    if (code < 0) return -code;
    if (!node.isOwn || stat.nlink === 1) return -this.#counted(() => this.#makeSpecial(node, directory, source, stat));
    return this.#options.walks.result(key, () => this.#copyingSpecial(node, stat));
  }

  *#copyingSpecial(node: Node, { ino, nlink }: syscalls.Stat): Walk<number> {
    const { layer } = node;
    const root = this.#tree.descriptors.get(this.#tree.root, layer);
    const links = yield* namesOfInode(root, ino, nlink);
    if (node.inDelta) return 0;
    if (node.parent === undefined) return Errno.ESTALE;
    const directory = this.directory(node.parent);
    const source = this.#tree.descriptors.get(node.parent, layer);
    if (directory < 0 || source < 0) return -Math.min(directory, source);
    const stat = new syscalls.Stat();
    let code = syscalls.statat(source, node.name, stat);
    if (code === 0) code = this.#counted(() => this.#makeSpecial(node, directory, source, stat));
    if (code < 0) return -code;
    for (const names of links) yield* this.#linkAgain(node, layer, ino, names);
    return 0;
  }

  #makeSpecial(node: Node, directory: number, source: number, stat: syscalls.Stat): number {
    const temporary = this.#delta.temporaryName();
    const { work } = this.#delta;
    let code: number;
    if (node.type === FileType.SYMLINK) {
      const target = Buffer.alloc(4096);
      const length = syscalls.readlinkat(source, node.name, target);
      if (length < 0) return length;
      code = syscalls.symlinkat(target.toString("latin1", 0, length), work, temporary);
    } else code = syscalls.mknodat(work, temporary, stat.mode & ~0o6000);
    if (code < 0) return code;
    syscalls.fchownat(work, temporary, stat.uid, stat.gid);
    syscalls.utimensat(work, temporary, stat.mtime, stat.mtimeNs, stat.mtime, stat.mtimeNs);
    using _times = keepTimes(directory);
    code = syscalls.renameat2(work, temporary, directory, node.name);
    if (code === 0) code = syscalls.statat(directory, node.name, stat);
    return code < 0 ? code : this.#switchOver(node, stat);
  }

  #regular(node: Node, key: string, directory: number, options: { empty: boolean; keepsOpen?: boolean }): number {
    const { empty } = options;
    const stat = new syscalls.Stat();
    const source = this.#openSource(node, stat);
    if (source < 0) return -source;
    const size = empty ? 0 : stat.size;
    if (!this.#take(size)) {
      syscalls.close(source);
      return Errno.EDQUOT;
    }
    const mode = this.#copiedMode(node, stat.mode);
    // What is not the owner's to write takes no attributes, and gets its mode when it has them.
    const draft = this.#delta.begin(directory, mode | 0o600);
    if (typeof draft === "number") {
      syscalls.close(source);
      this.#giveBack(size);
      return -draft;
    }
    const finish = (errno: number): number => {
      const result = errno === 0 ? this.#complete(node, stat, source, draft, mode, empty) : errno;
      syscalls.close(source);
      // Whoever has the file open needs a descriptor of the copy at all times.
      const keepsOpen = node.openCount > 0 || (options.keepsOpen === true && size <= AT_ONCE);
      if (result === 0 && keepsOpen && node.fd < 0) {
        node.fd = draft.fd;
        node.fdWritable = true;
      } else syscalls.close(draft.fd);
      if (result !== 0 && !node.superseded) {
        this.#delta.discard(draft);
        this.#giveBack(size);
      }
      return result;
    };
    const isCloned = size > AT_ONCE && syscalls.cloneFile(source, draft.fd) === 0;
    const transfer = isCloned ? undefined : new Transfer(source, draft.fd, size);
    const known = node.parent === undefined ? 0 : 1;
    const linked = node.isOwn && stat.nlink > known ? node.layer : undefined;
    if (isCloned && linked === undefined) return finish(0);
    this.#copies.add(key);
    return this.#options.walks.result(key, () =>
      this.#copying(node, stat, { transfer, linked }, (errno) => {
        this.#copies.delete(key);
        return finish(errno);
      }),
    );
  }

  // Nobody waits for the copy any more when it ends before it is done.
  *#copying(
    node: Node,
    { ino, nlink }: syscalls.Stat,
    { transfer, linked }: { readonly transfer: Transfer | undefined; readonly linked: number | undefined },
    finish: (errno: number) => number,
  ): Walk<number> {
    let links: readonly (readonly string[])[] = [];
    let errno: number = Errno.EINTR;
    let result = errno;
    try {
      const root = linked === undefined ? -1 : this.#tree.descriptors.get(this.#tree.root, linked);
      if (root >= 0) links = yield* namesOfInode(root, ino, nlink);
      // It has lost the names that are known, and not all: its copy has those that are left.
      for (const names of node.parent === undefined ? links : []) {
        yield* this.#whereShown(linked!, ino, names, (directory, name) => this.#tree.bind(directory, name));
      }
      let done = transfer?.step(AT_ONCE) ?? 0;
      for (; done === MORE; done = transfer!.step(SLICE)) {
        turn.isOver();
        yield;
      }
      errno = done;
    } finally {
      result = finish(errno);
    }
    if (result === 0) for (const names of links) yield* this.#linkAgain(node, linked!, ino, names);
    return result;
  }

  /** Hard links that the sandbox made are one file: a name that still shows the frozen one leads to its copy from now on. */
  *#linkAgain(node: Node, layer: number, inode: number, names: readonly string[]): Walk<void> {
    const tree = this.#tree;
    yield* this.#whereShown(layer, inode, names, (directory, name) => {
      if (node.parent === undefined || !node.inDelta) return;
      const [to, from] = [this.directory(directory), tree.descriptors.get(node.parent, tree.stack.top)];
      if (to < 0 || from < 0) return;
      using _times = keepTimes(to);
      if (syscalls.linkat(from, node.name, to, name) !== 0) return;
      if (this.#options.quota) this.#options.quota.used.files += 1;
      tree.noteLink(node);
    });
  }

  /** Runs if the path shows this inode of this layer. */
  *#whereShown(
    layer: number,
    inode: number,
    names: readonly string[],
    run: (directory: Node, name: string) => void,
  ): Walk<void> {
    const tree = this.#tree;
    const pinned: Node[] = [];
    turn.entries += names.length;
    yield;
    try {
      let directory = tree.root;
      for (const name of names.slice(0, -1)) {
        if (tree.resolve(directory, name) !== 0 || tree.stat.type !== FileType.DIRECTORY) return;
        directory = tree.bind(directory, name);
        directory.pins += 1;
        pinned.push(directory);
      }
      const name = names.at(-1)!;
      if (tree.resolve(directory, name) !== 0 || tree.foundLayers[0] !== layer || tree.stat.ino !== inode) return;
      run(directory, name);
    } finally {
      for (const each of pinned.reverse()) {
        each.pins -= 1;
        tree.release(each);
      }
    }
  }

  #complete(node: Node, stat: syscalls.Stat, source: number, draft: Draft, mode: number, empty: boolean): number {
    // The world may have moved on while a large file was copied.
    if (node.inDelta) return 0;
    if ((node.isOwn ? node.deltaInode : node.lowerInode) !== stat.ino) return Errno.ESTALE;
    if (node.parent === undefined && !isHeld(node)) return Errno.ESTALE;
    const directory = node.parent === undefined ? this.#delta.work : this.directory(node.parent);
    if (directory < 0) return -directory;
    const { fd } = draft;
    copyUserXattrs(source, fd);
    // What a snapshot holds is the sandbox's own work.
    if (!empty && !node.isOwn && node.parent !== undefined) {
      markCopy(fd, this.#tree.deltaPath(node.parent, node.name), stat, mode);
    }
    const copy = this.#stat;
    let code = syscalls.fstat(fd, copy);
    if (code < 0) return -code;
    if (copy.uid !== stat.uid || copy.gid !== stat.gid) syscalls.fchownat(fd, "", stat.uid, stat.gid);
    if ((copy.mode & 0o7777) !== mode) syscalls.fchmod(fd, mode);
    const mtimeNs = empty ? syscalls.UTIME_NOW : stat.mtimeNs;
    syscalls.utimensat(fd, "", stat.atime, stat.atimeNs, stat.mtime, mtimeNs);
    if (node.parent === undefined) {
      this.#delta.discard(draft);
      return this.#holdNameless(node, copy);
    }
    using _times = keepTimes(directory);
    code = this.#delta.install(draft, directory, node.name);
    return code < 0 ? -code : -this.#switchOver(node, copy);
  }

  // What the sandbox could do with the file before, it can do after.
  #copiedMode(node: Node, diskMode: number): number {
    return (diskMode | this.#options.presentation.mode(node, diskMode)) & 0o1777;
  }

  // A FIFO or socket that a snapshot froze, and that was unlinked since: who has it open may still change its attributes.
  #namelessPipe(node: Node): number {
    const stat = this.#stat;
    const isPipe = node.isOwn && (node.type === FileType.FIFO || node.type === FileType.SOCKET) && node.orphan >= 0;
    if (!isPipe || syscalls.fstat(node.orphan, stat) < 0) return Errno.ESTALE;
    const { work } = this.#delta;
    const temporary = this.#delta.temporaryName();
    const code = syscalls.mknodat(work, temporary, stat.mode & ~0o6000);
    if (code < 0) return -code;
    syscalls.fchownat(work, temporary, stat.uid, stat.gid);
    syscalls.utimensat(work, temporary, stat.atime, stat.atimeNs, stat.mtime, stat.mtimeNs);
    const held = syscalls.openat(work, temporary, Open.PATH);
    syscalls.unlinkat(work, temporary);
    if (held < 0) return -held;
    syscalls.close(node.orphan);
    node.orphan = held;
    node.layers = NAMELESS_LAYERS;
    return 0;
  }

  #holdNameless(node: Node, stat: syscalls.Stat): number {
    const copied = { deltaInode: stat.ino, size: stat.size };
    this.#options.quota?.settle(copied, stat);
    const before = node.deltaInode;
    Object.assign(node, copied);
    node.layers = NAMELESS_LAYERS;
    this.#tree.copied(node, before);
    node.countedNameless = this.#options.quota !== undefined;
    syscalls.close(node.fd);
    node.fd = -1;
    node.fdWritable = false;
    return 0;
  }

  /** From now on the node is the delta's file; open handles follow, since they share the node's descriptor. */
  #switchOver(node: Node, stat: syscalls.Stat): number {
    const copied = { deltaInode: stat.ino, size: stat.size };
    if (node.isRegular) this.#options.quota?.settle(copied, stat);
    if (node.ioMode === "passthrough") return this.#supersede(node, stat.ino);
    const before = node.deltaInode;
    node.layers = this.#tree.single(this.#tree.stack.top);
    Object.assign(node, copied);
    this.#tree.copied(node, before);
    this.#tree.inodes.keep(stat.ino, node.ino);
    if (node.fd >= 0) syscalls.close(node.fd);
    node.fd = -1;
    node.fdWritable = false;
    return 0;
  }

  // The kernel has tied the open handles to the codebase's file. They keep it under the old node; the name gets a new one:
  // ESTALE makes the kernel look it up again and repeat what it was doing.
  #supersede(node: Node, deltaInode: number): number {
    this.#tree.inodes.keep(deltaInode, node.ino);
    this.#tree.cutOff(node, node.parent!, node.name, { superseded: true });
    return -Errno.ESTALE;
  }

  // Makes an entry of the delta for which there is room. 0 or a negated errno.
  #counted(make: () => number): number {
    if (!this.#take(0)) return -Errno.EDQUOT;
    const code = make();
    if (code < 0) this.#giveBack(0);
    return code;
  }

  // As much as a copy of this size is charged; what it really has is settled when it is complete.
  #take(size: number): boolean {
    const quota = this.#options.quota;
    if (quota === undefined) return true;
    if (!quota.takeFiles(1)) return false;
    if (quota.takeBytes(wholeBlocks(size))) return true;
    quota.takeFiles(-1);
    return false;
  }

  #giveBack(size: number): void {
    this.#options.quota?.takeFiles(-1);
    this.#options.quota?.takeBytes(-wholeBlocks(size));
  }
}

/** Unlinked, and still open: its copy has no name either. */
function isHeld({ parent, fd, superseded }: Node): boolean {
  return parent === undefined && fd >= 0 && !superseded;
}
