import { statfsSync } from "node:fs";
import {
  type AttributeChange,
  Attributes,
  type Caller,
  type CopyRange,
  type CopyResult,
  check,
  Errno,
  type FileSystem,
  HandleTable,
  NodeTable,
  type Reply,
  type Result,
  ROOT_ID,
  SetattrField,
  syscalls as sys,
} from "@agentfense/fuse";
import {
  attributesOf,
  type Backing,
  type DirectoryEntry,
  dropPrivileges,
  errnoOf,
  keyOf,
  magicLink,
  readEntries,
  resize,
  setTimes,
} from "./backing.ts";

const { FileType, Open } = sys;

// Others may change the directory behind our back, so the kernel asks again after a second.
const VALID_MS = 1000;

/**
 * Shows a directory as it is. Every node the kernel remembers holds one O_PATH descriptor, which is simple and exact but
 * makes the limit of open files (RLIMIT_NOFILE) the limit of the tree. Whoever may enter the mount acts as the server's
 * user: nothing here checks permissions, so it is for mounts without `allowOther`.
 */
export class LoopbackFileSystem implements FileSystem {
  readonly #root: Backing;
  readonly #nodes: NodeTable<Backing>;
  readonly #byKey = new Map<string, Backing>();
  readonly #files = new HandleTable<number>();
  readonly #directories = new HandleTable<readonly DirectoryEntry[]>();
  readonly #stat = new sys.Stat();
  readonly #attributes = new Attributes();

  constructor(directory: string) {
    const path = Buffer.from(directory, "utf8").toString("latin1");
    const fd = check(`open ${directory}`, sys.open(path, Open.PATH | Open.DIRECTORY));
    check("fstat", sys.fstat(fd, this.#stat));
    this.#root = { fd, key: keyOf(this.#stat), nodeId: ROOT_ID };
    this.#nodes = new NodeTable(this.#root);
    this.#byKey.set(this.#root.key, this.#root);
    // The kernel has applied the caller's umask already; ours must not be applied on top of it.
    check("unshare", sys.isolateUmask());
  }

  destroy(): void {
    for (const fd of this.#files.values()) sys.close(fd);
    for (const node of this.#nodes.values()) sys.close(node.fd);
  }

  lookup(parent: number, name: string, _caller: Caller, reply: Reply): Result {
    return this.#enter(parent, name, reply);
  }

  forget(node: number, count: number): void {
    const backing = this.#nodes.forget(node, count);
    if (backing === undefined) return;
    this.#byKey.delete(backing.key);
    sys.close(backing.fd);
  }

  getattr(node: number, _caller: Caller, reply: Reply): Result {
    const errno = errnoOf(sys.fstat(this.#fd(node), this.#stat));
    if (errno === Errno.OK) reply.attributes(attributesOf(this.#stat, this.#attributes), VALID_MS);
    return errno;
  }

  setattr(node: number, change: AttributeChange, caller: Caller, reply: Reply): Result {
    const fd = this.#fd(node);
    const has = (field: number) => (change.fields & field) !== 0;
    const steps: (() => Result)[] = [];
    if (has(SetattrField.SIZE)) steps.push(() => resize(fd, this.#files.get(change.handle), change.size));
    if (has(SetattrField.UID | SetattrField.GID)) {
      const uid = has(SetattrField.UID) ? change.uid : -1;
      const gid = has(SetattrField.GID) ? change.gid : -1;
      steps.push(() => errnoOf(sys.fchownat(fd, "", uid, gid)));
    }
    if (has(SetattrField.MODE)) steps.push(() => errnoOf(sys.chmodHeld(fd, change.mode & 0o7777)));
    if (has(SetattrField.ATIME | SetattrField.MTIME)) steps.push(() => setTimes(fd, change));
    for (const step of steps) {
      const errno = step();
      if (errno !== Errno.OK) return errno;
    }
    return this.getattr(node, caller, reply);
  }

  readlink(node: number, _caller: Caller, reply: Reply): Result {
    const length = sys.readlinkat(this.#fd(node), "", reply.bytes.subarray(reply.dataOffset));
    if (length >= 0) reply.setDataLength(length);
    return errnoOf(length);
  }

  symlink(parent: number, name: string, target: string, _caller: Caller, reply: Reply): Result {
    return errnoOf(sys.symlinkat(target, this.#fd(parent), name)) || this.#enter(parent, name, reply);
  }

  mknod(parent: number, name: string, mode: number, _rdev: number, _caller: Caller, reply: Reply): Result {
    const type = mode & FileType.MASK;
    if (type === FileType.CHARACTER || type === FileType.BLOCK) return Errno.EPERM;
    return errnoOf(sys.mknodat(this.#fd(parent), name, mode)) || this.#enter(parent, name, reply);
  }

  mkdir(parent: number, name: string, mode: number, _caller: Caller, reply: Reply): Result {
    return errnoOf(sys.mkdirat(this.#fd(parent), name, mode)) || this.#enter(parent, name, reply);
  }

  unlink(parent: number, name: string): Result {
    return errnoOf(sys.unlinkat(this.#fd(parent), name));
  }

  rmdir(parent: number, name: string): Result {
    return errnoOf(sys.unlinkat(this.#fd(parent), name, sys.AT_REMOVEDIR));
  }

  rename(parent: number, name: string, newParent: number, newName: string, flags: number): Result {
    return errnoOf(sys.renameat2(this.#fd(parent), name, this.#fd(newParent), newName, flags));
  }

  link(node: number, newParent: number, newName: string, _caller: Caller, reply: Reply): Result {
    const code = sys.linkDescriptor(this.#fd(node), this.#fd(newParent), newName);
    return errnoOf(code) || this.#enter(newParent, newName, reply);
  }

  open(node: number, flags: number, _caller: Caller, reply: Reply): Result {
    // Not O_APPEND: the kernel gives the offset of each write, and Linux would ignore it.
    const fd = sys.open(magicLink(this.#fd(node)), flags & (Open.ACCMODE | Open.TRUNC | Open.SYNC | Open.NONBLOCK));
    if (fd < 0) return -fd;
    reply.opened(node, this.#files.open(fd), 0);
    return Errno.OK;
  }

  create(parent: number, name: string, flags: number, mode: number, _caller: Caller, reply: Reply): Result {
    const kept = flags & (Open.ACCMODE | Open.TRUNC | Open.EXCL | Open.SYNC);
    const fd = sys.openat(this.#fd(parent), name, kept | Open.CREAT, mode & 0o7777);
    if (fd < 0) return -fd;
    const errno = this.#enter(parent, name, reply);
    if (errno !== Errno.OK) {
      sys.close(fd);
      return errno;
    }
    reply.opened(reply.granted[0]!, this.#files.open(fd), 0);
    return Errno.OK;
  }

  read(_node: number, handle: number, offset: number, size: number, reply: Reply): Result {
    const into = reply.bytes.subarray(reply.dataOffset, reply.dataOffset + size);
    const length = sys.pread(this.#file(handle), into, size, offset);
    if (length >= 0) reply.setDataLength(length);
    return errnoOf(length);
  }

  write(
    _node: number,
    handle: number,
    offset: number,
    data: Buffer,
    _openFlags: number,
    _caller: Caller,
    reply: Reply,
  ): Result {
    const fd = this.#file(handle);
    const written = sys.pwrite(fd, data, data.length, offset);
    if (written < 0) return -written;
    dropPrivileges(fd);
    reply.written(written);
    return Errno.OK;
  }

  // Closing a second descriptor of the file reports what a delayed write failed with.
  flush(_node: number, handle: number): Result {
    const copy = sys.dup(this.#file(handle));
    return errnoOf(copy < 0 ? copy : sys.close(copy));
  }

  release(_node: number, handle: number): void {
    const fd = this.#files.close(handle);
    if (fd !== undefined) sys.close(fd);
  }

  fsync(_node: number, handle: number, dataOnly: boolean): Result {
    const fd = this.#file(handle);
    return errnoOf(dataOnly ? sys.fdatasync(fd) : sys.fsync(fd));
  }

  fallocate(_node: number, handle: number, offset: number, length: number, mode: number): Result {
    return errnoOf(sys.fallocate(this.#file(handle), mode, offset, length));
  }

  lseek(_node: number, handle: number, offset: number, whence: number, reply: Reply): Result {
    const position = sys.lseek(this.#file(handle), offset, whence);
    if (position >= 0) reply.number(position);
    return errnoOf(position);
  }

  copyFileRange(range: CopyRange): CopyResult {
    const target = this.#file(range.targetHandle);
    const copied = sys.copyFileRange(
      this.#file(range.handle),
      range.offset,
      target,
      range.targetOffset,
      Math.min(range.length, 0x7ffff000),
    );
    if (copied < 0) return { errno: -copied };
    dropPrivileges(target);
    return { copied };
  }

  opendir(node: number, _flags: number, _caller: Caller, reply: Reply): Result {
    const fd = sys.open(magicLink(this.#fd(node)), Open.RDONLY | Open.DIRECTORY);
    if (fd < 0) return -fd;
    const entries = readEntries(fd);
    sys.close(fd);
    if ("errno" in entries) return entries.errno;
    reply.opened(node, this.#directories.open(entries), 0);
    return Errno.OK;
  }

  readdir(_node: number, handle: number, offset: number, size: number, _caller: Caller, reply: Reply): Result {
    const entries = this.#directories.get(handle);
    if (entries === undefined) return Errno.EBADF;
    for (let i = offset; i < entries.length; i++) {
      const { name, ino, type } = entries[i]!;
      if (!reply.directoryEntry(size, ino, i + 1, type, name)) break;
    }
    return Errno.OK;
  }

  readdirplus(node: number, handle: number, offset: number, size: number, _caller: Caller, reply: Reply): Result {
    const entries = this.#directories.get(handle);
    if (entries === undefined) return Errno.EBADF;
    const directory = this.#fd(node);
    for (let i = offset; i < entries.length; i++) {
      const { name, ino, type } = entries[i]!;
      if (!reply.fitsPlus(size, name)) break;
      // "." and ".." count no lookup; what vanished meanwhile is shown by name and found missing when looked up.
      const found = name === "." || name === ".." ? undefined : this.#find(directory, name);
      const known = typeof found === "object";
      if (known) {
        this.#nodes.grant(found.nodeId);
        attributesOf(this.#stat, this.#attributes);
      } else this.#attributes.ino = ino;
      const nodeId = known ? found.nodeId : 0;
      reply.directoryEntryPlus(size, nodeId, this.#attributes, VALID_MS, VALID_MS, i + 1, type, name);
    }
    return Errno.OK;
  }

  releasedir(_node: number, handle: number): void {
    this.#directories.close(handle);
  }

  fsyncdir(node: number): Result {
    const fd = sys.open(magicLink(this.#fd(node)), Open.RDONLY | Open.DIRECTORY);
    if (fd < 0) return -fd;
    const code = sys.fsync(fd);
    sys.close(fd);
    return errnoOf(code);
  }

  statfs(_node: number, reply: Reply): Result {
    const { blocks, bfree, files, ffree, bsize } = statfsSync(magicLink(this.#root.fd));
    reply.statistics({
      blocks,
      blocksFree: bfree,
      files,
      filesFree: ffree,
      blockSize: bsize,
      nameLength: 255,
    });
    return Errno.OK;
  }

  setxattr(node: number, name: string, value: Buffer, flags: number): Result {
    return errnoOf(sys.setxattrFollowing(magicLink(this.#fd(node)), name, value, flags));
  }

  getxattr(node: number, name: string, size: number, _caller: Caller, reply: Reply): Result {
    const into = reply.bytes.subarray(reply.dataOffset);
    return answerXattr(sys.getxattrFollowing(magicLink(this.#fd(node)), name, into, size), size, reply);
  }

  listxattr(node: number, size: number, _caller: Caller, reply: Reply): Result {
    const into = reply.bytes.subarray(reply.dataOffset);
    return answerXattr(sys.listxattrFollowing(magicLink(this.#fd(node)), into, size), size, reply);
  }

  removexattr(node: number, name: string): Result {
    return errnoOf(sys.removexattrFollowing(magicLink(this.#fd(node)), name));
  }

  /** The entry reply for a name; counts the lookup. */
  #enter(parent: number, name: string, reply: Reply): Result {
    const found = this.#find(this.#fd(parent), name);
    if (typeof found === "number") return found;
    this.#nodes.grant(found.nodeId);
    reply.entry(found.nodeId, attributesOf(this.#stat, this.#attributes), VALID_MS, VALID_MS);
    return Errno.OK;
  }

  /** The node behind a name, with its attributes in `#stat`. The descriptor decides what it is, so no race can. */
  #find(directory: number, name: string): Backing | Result {
    const fd = sys.openat(directory, name, Open.PATH);
    if (fd < 0) return -fd;
    const errno = errnoOf(sys.fstat(fd, this.#stat));
    if (errno !== Errno.OK) {
      sys.close(fd);
      return errno;
    }
    const key = keyOf(this.#stat);
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      sys.close(fd);
      return known;
    }
    const node: Backing = { fd, key, nodeId: 0 };
    node.nodeId = this.#nodes.allocate(node);
    this.#byKey.set(key, node);
    return node;
  }

  // No file has the descriptor -1, so a call for a node or handle that is not there fails.
  #fd(node: number): number {
    return this.#nodes.get(node)?.fd ?? -1;
  }

  #file(handle: number): number {
    return this.#files.get(handle) ?? -1;
  }
}

/** A size of 0 asks how large the answer would be. */
function answerXattr(length: number, size: number, reply: Reply): Result {
  if (length < 0) return -length;
  if (size === 0) reply.xattrSize(length);
  else reply.setDataLength(length);
  return Errno.OK;
}
