import {
  type Caller,
  type ConnectionInfo,
  ContentStore,
  type CopyRange,
  type CopyResult,
  Errno,
  OpenFlag,
  type Reply,
  syscalls,
} from "@agentfense/fuse";
import { LEVEL } from "@agentfense/permission";
import { type Context, noteAccess, overQuota, requireLevel } from "./context.ts";
import { Access } from "./credentials.ts";
import type { Node } from "./node.ts";
import { BLOCK_SIZE, type Quota, wholeBlocks } from "./quota.ts";

const { Open } = syscalls;

/** A handle needs no table: it only says whether it may write. */
const Handle = { READ: 1, WRITE: 3 } as const;
const HANDLE_WRITES = 2;

/**
 * From this size on, read-only opens of codebase files use passthrough even where the sandbox may write the file: a
 * reader that opened it before its first write then keeps reading the old content, as on overlayfs.
 */
const LARGE = 64 << 20;

/** Files up to this size are handed to the kernel whole when they are opened: one request less for who reads them. */
const SMALL = 128 << 10;

/** A single copy_file_range is cut here, so that other clients get their turn; callers loop anyway. */
const COPY_SLICE = 16 << 20;
/** Where the quota is nearly used up, as much as a single write can have. */
const SMALL_COPY = 1 << 20;

/** Modes of fallocate; the kernel sends no others. */
const Allocate = { KEEP_SIZE: 1, PUNCH_HOLE: 2, ZERO_RANGE: 16 } as const;
const ALL_MODES = Allocate.KEEP_SIZE | Allocate.PUNCH_HOLE | Allocate.ZERO_RANGE;

/** Content of files: open, read, write and what goes with them. */
export class Files {
  readonly #context: Context;
  readonly #revocable: boolean;
  readonly #allowsPassthrough: boolean;
  readonly #store = new ContentStore(SMALL);
  #connectionFd = -1;
  #passthroughFd = -1;

  constructor(context: Context, options: { revocable: boolean; passthrough: boolean }) {
    this.#context = context;
    this.#revocable = options.revocable;
    this.#allowsPassthrough = options.passthrough && !options.revocable;
  }

  connect(connection: ConnectionInfo): void {
    this.#connectionFd = connection.fd;
    if (connection.passthrough && this.#allowsPassthrough) this.#passthroughFd = connection.fd;
  }

  open(node: Node, flags: number, caller: Caller, reply: Reply): number {
    const writes = (flags & Open.ACCMODE) !== Open.RDONLY || (flags & Open.TRUNC) !== 0;
    const errno = this.#mayOpen(node, flags, writes, caller);
    if (errno !== 0) return errno;
    if (writes) {
      const prepared = this.#prepareWrite(node, (flags & Open.TRUNC) !== 0, caller);
      if (prepared !== 0) return prepared;
    } else if (node.openCount === 0 && !node.contentKnown) this.#pushContent(node);
    const granted = this.grant(node, writes, reply);
    if (granted !== 0) this.closeIdle(node);
    return granted;
  }

  // Nobody has the file open, so this cannot block; see ContentStore.
  #pushContent(node: Node): void {
    if (this.#revocable || node.bypassed || node.size === 0 || node.size > SMALL) return;
    const fd = this.descriptor(node, false);
    if (fd < 0) return;
    node.contentKnown = this.#store.push(this.#connectionFd, node.id, fd);
  }

  /** Completes an OPEN or CREATE: settles how the kernel does I/O on the file and counts the handle. */
  grant(node: Node, writes: boolean, reply: Reply): number {
    if (node.openCount === 0) node.ioMode = this.#wantsPassthrough(node, writes) ? "passthrough" : "cached";
    // Now, though the kernel may have all of it: another file can take its name in the codebase before a read asks for it.
    const fd = this.descriptor(node, writes);
    const isNew = node.openCount === 0;
    if (fd < 0 || (isNew && !this.#context.tree.openings.opened(node))) {
      if (isNew) node.ioMode = "none";
      return fd < 0 ? -fd : Errno.ENFILE;
    }
    if (node.ioMode === "passthrough" && node.backingId === 0) this.#register(node);
    let openFlags = 0;
    if (node.ioMode === "cached") {
      // Pages that were cached before somebody wrote past them, in passthrough mode, are no longer good.
      if (!node.bypassed) openFlags |= OpenFlag.KEEP_CACHE;
      node.bypassed = false;
    } else openFlags |= OpenFlag.PASSTHROUGH;
    node.openCount += 1;
    if (writes) {
      node.writers += 1;
      this.#context.tree.written.add(node);
      if (node.ioMode === "passthrough") {
        node.bypassed = true;
        this.#context.tree.passedBy.add(node);
      }
    }
    reply.opened(node.id, writes ? Handle.WRITE : Handle.READ, openFlags, node.backingId);
    return 0;
  }

  release(node: Node, handle: number): void {
    if (node.openCount === 0) return;
    node.openCount -= 1;
    if ((handle & HANDLE_WRITES) !== 0) node.writers -= 1;
    if (node.writers === 0) this.#context.tree.written.delete(node);
    if (node.openCount > 0) return;
    this.#context.tree.passedBy.delete(node);
    node.ioMode = "none";
    if (node.backingId !== 0) syscalls.backingClose(this.#passthroughFd, node.backingId);
    node.backingId = 0;
    this.#context.tree.openings.closed(node);
    this.#context.tree.release(node);
  }

  read(node: Node, offset: number, size: number, reply: Reply): number {
    if (this.#revocable && this.#context.tree.levelOf(node) < LEVEL.read) return Errno.EACCES;
    const fd = this.descriptor(node, false);
    if (fd < 0) return -fd;
    const into = reply.bytes.subarray(reply.dataOffset, reply.dataOffset + size);
    const length = syscalls.pread(fd, into, size, offset);
    node.contentKnown = true;
    if (length < 0) return -length;
    reply.setDataLength(length);
    return 0;
  }

  write(node: Node, offset: number, data: Buffer, openFlags: number, caller: Caller, reply: Reply): number {
    if (this.#revocable && this.#context.tree.levelOf(node) < LEVEL.write) {
      // It may be a page that was dirtied through a mapping: the kernel must not go on showing it.
      this.#context.stalePages(node.id);
      return Errno.EACCES;
    }
    const carried = this.#carry(node, "write", caller);
    if (carried !== 0) return carried;
    const fd = this.descriptor(node, true);
    if (fd < 0) return -fd;
    const errno = this.#reserve(node, offset + data.length, "write", caller);
    if (errno !== 0) return errno;
    const written = syscalls.pwrite(fd, data, data.length, offset);
    this.#settle(node, fd);
    if (written < 0) return -written;
    if ((openFlags & (Open.DSYNC | Open.SYNC)) !== 0) {
      const synced = syscalls.fdatasync(fd);
      if (synced < 0) return -synced;
    }
    reply.written(written);
    return 0;
  }

  fsync(node: Node, dataOnly: boolean): number {
    // Never opened for writing: nothing of ours is unwritten.
    if (node.fd < 0 || !node.isOwn) return 0;
    return -(dataOnly ? syscalls.fdatasync(node.fd) : syscalls.fsync(node.fd));
  }

  fallocate(node: Node, offset: number, length: number, mode: number, caller: Caller): number {
    if ((mode & ~ALL_MODES) !== 0) return Errno.EOPNOTSUPP;
    if (this.#revocable && this.#context.tree.levelOf(node) < LEVEL.write) return Errno.EACCES;
    const carried = this.#carry(node, "fallocate", caller);
    if (carried !== 0) return carried;
    const fd = this.descriptor(node, true);
    if (fd < 0) return -fd;
    const errno = (mode & Allocate.PUNCH_HOLE) === 0 ? this.#allocate(node, fd, offset, length, mode, caller) : 0;
    if (errno !== 0) return errno;
    const code = syscalls.fallocate(fd, mode, offset, length);
    this.#settle(node, fd);
    return -code;
  }

  // Some of the range may be allocated already, and nobody can tell how much. Where the quota might not hold all of it, it is
  // allocated step by step, until it is done or one step too many was taken.
  #allocate(node: Node, fd: number, offset: number, length: number, mode: number, caller: Caller): number {
    const quota = this.#meter;
    if (quota === undefined) return 0;
    const end = offset + length;
    const size = (mode & Allocate.KEEP_SIZE) === 0 ? Math.max(node.size, end) : node.size;
    const errno = this.#reserve(node, size, "fallocate", caller);
    if (errno !== 0 || quota.makeRoom(wholeBlocks((offset % BLOCK_SIZE) + length))) return errno;
    for (let at = offset; at < end; at += quota.step) {
      const code = syscalls.fallocate(fd, Allocate.KEEP_SIZE, at, Math.min(quota.step, end - at));
      this.#settle(node, fd);
      if (code < 0) return -code;
      if (!quota.makeRoom(0)) break;
    }
    this.#context.staleAttributes(node.id); // for when it fails, and the kernel thinks that nothing has changed
    return this.#reserve(node, size, "fallocate", caller);
  }

  // Where data is tells of the content.
  lseek(node: Node, offset: number, whence: number, reply: Reply): number {
    if (this.#revocable && this.#context.tree.levelOf(node) < LEVEL.read) return Errno.EACCES;
    const fd = this.descriptor(node, false);
    if (fd < 0) return -fd;
    const position = syscalls.lseek(fd, offset, whence);
    if (position < 0) return -position;
    reply.number(position);
    return 0;
  }

  copyRange(from: Node, to: Node, range: CopyRange, caller: Caller): CopyResult {
    const { tree } = this.#context;
    if (this.#revocable && (tree.levelOf(from) < LEVEL.read || tree.levelOf(to) < LEVEL.write)) {
      return { errno: Errno.EACCES };
    }
    const carried = this.#carry(to, "copy_file_range", caller);
    if (carried !== 0) return { errno: carried };
    const target = this.descriptor(to, true);
    const source = this.descriptor(from, false);
    if (source < 0 || target < 0) return { errno: source < 0 ? -source : -target };
    const hasRoom = this.#meter?.makeRoom(COPY_SLICE) ?? true;
    const length = Math.min(range.length, hasRoom ? COPY_SLICE : SMALL_COPY);
    const end = range.targetOffset + length;
    const errno = this.#reserve(to, end, "copy_file_range", caller);
    if (errno !== 0) return { errno };
    const copied = syscalls.copyFileRange(source, range.offset, target, range.targetOffset, length);
    this.#settle(to, target);
    // Across file systems the client's own read and write do the work; ENOSYS would disable it for the whole mount.
    if (copied < 0) return { errno: -copied === Errno.EXDEV || -copied === Errno.EINVAL ? Errno.EOPNOTSUPP : -copied };
    return { copied };
  }

  /** Changes the size of a file in the delta. */
  truncate(node: Node, size: number, caller: Caller): number {
    const fd = this.descriptor(node, true);
    if (fd < 0) return -fd;
    if (node.orphan < 0) return this.#resize(node, fd, size, caller);
    // By a path that leads to an O_PATH descriptor: for this moment it is open.
    const { openings } = this.#context.tree;
    openings.opened(node);
    const errno = this.#resize(node, fd, size, caller);
    openings.closed(node);
    return errno;
  }

  #resize(node: Node, fd: number, size: number, caller: Caller): number {
    const errno = size > node.size ? this.#reserve(node, size, "truncate", caller) : 0;
    if (errno !== 0) return errno;
    const code = syscalls.ftruncate(fd, size);
    this.#settle(node, fd);
    return -code;
  }

  /** Closes a descriptor that was opened for one operation on a file nobody has open. */
  closeIdle(node: Node): void {
    if (node.openCount > 0 || node.fd < 0) return;
    syscalls.close(node.fd);
    node.fd = -1;
    node.fdWritable = false;
  }

  /** The backing file, opened on first use and shared by all handles. */
  descriptor(node: Node, writable: boolean): number {
    if (node.fd >= 0 && (!writable || (node.fdWritable && node.inDelta))) return node.fd;
    if (writable && !node.inDelta) return -Errno.ESTALE;
    const fd = this.#openBacking(node, writable);
    if (fd < 0) return fd;
    if (node.fd >= 0) syscalls.close(node.fd);
    node.fd = fd;
    return fd;
  }

  // A file that was open for writing when a snapshot froze it: before the first write after that it is copied up, as any other of the
  // layers below. Its handles follow, since they share the node's descriptor.
  #carry(node: Node, operation: string, caller: Caller): number {
    const { writing } = this.#context;
    if (node.inDelta || writing === undefined) return 0;
    const errno = writing.copyUp.file(node, { empty: false, keepsOpen: true });
    return errno === Errno.EDQUOT ? overQuota(this.#context, node, undefined, operation, caller) : errno;
  }

  #openBacking(node: Node, writable: boolean): number {
    node.fdWritable = writable;
    const fd = this.#openWith(node, writable ? Open.RDWR : Open.RDONLY);
    if (fd >= 0 || !writable || (-fd !== Errno.EACCES && -fd !== Errno.EROFS)) return fd;
    // Only an unprivileged server gets here: its own user may read the file, or write it, but not both.
    node.fdWritable = false;
    const readable = this.#openWith(node, Open.RDONLY);
    if (readable >= 0) return readable;
    node.fdWritable = true;
    return this.#openWith(node, Open.WRONLY);
  }

  #openWith(node: Node, mode: number): number {
    // NONBLOCK: should the name have become a fifo behind our back, opening it must not hang the thread.
    if (node.parent === undefined) {
      const held = node.orphan >= 0 ? node.orphan : node.fd;
      return held < 0 ? -Errno.ESTALE : syscalls.open(`/proc/self/fd/${held}`, mode | Open.NONBLOCK);
    }
    const directory = this.#context.tree.descriptors.get(node.parent, node.layer);
    return directory < 0 ? directory : syscalls.openat(directory, node.name, mode | Open.NONBLOCK);
  }

  #mayOpen(node: Node, flags: number, writes: boolean, caller: Caller): number {
    const { credentials, writing } = this.#context;
    const needed = writes ? LEVEL.write : LEVEL.read;
    const errno = requireLevel(this.#context, node, needed, "open", caller);
    if (errno !== 0) return errno;
    if (writes && writing === undefined) return Errno.EROFS;
    if (!credentials.bypasses(caller)) {
      const runs = (flags & Open.EXEC) !== 0;
      const reads = (flags & Open.ACCMODE) !== Open.WRONLY && !runs;
      const access = (reads ? Access.READ : 0) | (writes ? Access.WRITE : 0) | (runs ? Access.EXECUTE : 0);
      if (!credentials.canReach(caller, node) || !credentials.may(caller, node, access)) return Errno.EACCES;
    }
    noteAccess(this.#context, node, undefined, needed);
    return 0;
  }

  #prepareWrite(node: Node, truncates: boolean, caller: Caller): number {
    const { writing } = this.#context;
    if (writing === undefined) return Errno.EROFS;
    if (!node.inDelta) {
      const errno = writing.copyUp.file(node, { empty: truncates, keepsOpen: true });
      if (errno === Errno.EDQUOT) return overQuota(this.#context, node, undefined, "open", caller);
      return errno;
    }
    if (!truncates) return 0;
    const errno = this.truncate(node, 0, caller);
    // Truncating an empty file moves its time all the same.
    if (errno === 0 && node.fd >= 0) syscalls.utimensat(node.fd, "", 0, syscalls.UTIME_OMIT, 0, syscalls.UTIME_NOW);
    return errno;
  }

  #wantsPassthrough(node: Node, writes: boolean): boolean {
    if (this.#passthroughFd < 0 || !node.isRegular) return false;
    // A quota in bytes has to see every write.
    if (node.inDelta) return this.#meter === undefined && (writes || node.size >= LARGE);
    // What was frozen in this mount is held by descriptors that it could be written through.
    return node.size >= LARGE && !node.isOfMount;
  }

  #register(node: Node): void {
    const id = syscalls.backingOpen(this.#passthroughFd, node.fd);
    if (id > 0) node.backingId = id;
    else node.ioMode = "cached";
  }

  /** The quota, if it is one in bytes. */
  get #meter(): Quota | undefined {
    const quota = this.#context.writing?.quota;
    return quota?.limits.bytes === undefined ? undefined : quota;
  }

  // Room up to this end of the file. What a file already has can be written again, unless the quota is exceeded: blocks that
  // are not seen in the size show only afterwards.
  #reserve(node: Node, end: number, operation: string, caller: Caller): number {
    const quota = this.#meter;
    if (quota?.makeRoom(Math.max(0, wholeBlocks(end) - quota.chargeOf(node))) ?? true) return 0;
    return overQuota(this.#context, node, undefined, operation, caller);
  }

  #settle(node: Node, fd: number): void {
    const quota = this.#meter;
    const { stat } = this.#context.tree;
    if (quota !== undefined && syscalls.fstat(fd, stat) === 0) quota.settle(node, stat);
  }
}
