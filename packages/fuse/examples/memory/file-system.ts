import {
  type AttributeChange,
  type Caller,
  type CopyRange,
  type CopyResult,
  Errno,
  type FileSystem,
  HandleTable,
  NodeTable,
  OpenFlag,
  type Reply,
  type Result,
  SetattrField,
  syscalls,
} from "@agentfense/fuse";
import { Directory, File, type Inode, Link } from "./inode.ts";

const { FileType, Open, Rename, Seek } = syscalls;

// Nobody else changes the tree, so the kernel may keep what it was told.
const VALID_MS = 3_600_000;
const NAME_MAX = 255;
const BLOCK_SIZE = 4096;
const XATTR_CREATE = 1;
const XATTR_REPLACE = 2;
const FALLOC_KEEP_SIZE = 1;
const FALLOC_PUNCH_HOLE = 2;

interface Limits {
  /** Bytes of file content. */
  readonly bytes: number;
  readonly inodes: number;
}

/** An open directory keeps the names it had when it was opened, so that offsets into it stay true. */
type OpenDirectory = readonly (readonly [name: string, inode: Inode])[];

/**
 * Files, directories and symlinks in memory. The tree holds its inodes by reference; the node table only says which of
 * them the kernel knows by which id, so that an unlinked file lives as long as the kernel remembers it.
 */
export class MemoryFileSystem implements FileSystem {
  readonly #root = new Directory(1, FileType.DIRECTORY | 0o755, { uid: process.getuid!(), gid: process.getgid!() });
  readonly #nodes = new NodeTable<Inode>(this.#root);
  readonly #directories = new HandleTable<OpenDirectory>();
  readonly #limits: Limits;
  #nextIno = 2;
  #bytes = 0;
  #inodes = 1;

  constructor(limits: Limits = { bytes: 256 << 20, inodes: 100_000 }) {
    this.#limits = limits;
    this.#root.nodeId = 1;
    this.#root.attributes.nlink = 2;
  }

  lookup(parent: number, name: string, _caller: Caller, reply: Reply): Result {
    const directory = this.#directory(parent);
    if (typeof directory === "number") return directory;
    const inode = directory.entries.get(name);
    if (inode === undefined) reply.absent(VALID_MS);
    else this.#hand(inode, reply);
    return Errno.OK;
  }

  forget(node: number, count: number): void {
    const inode = this.#nodes.forget(node, count);
    if (inode === undefined) return;
    inode.nodeId = 0;
    this.#dropIfUnreachable(inode);
  }

  getattr(node: number, _caller: Caller, reply: Reply): Result {
    const inode = this.#nodes.get(node);
    if (inode === undefined) return Errno.ESTALE;
    reply.attributes(inode.attributes, VALID_MS);
    return Errno.OK;
  }

  setattr(node: number, change: AttributeChange, _caller: Caller, reply: Reply): Result {
    const inode = this.#nodes.get(node);
    if (inode === undefined) return Errno.ESTALE;
    const has = (field: number) => (change.fields & field) !== 0;
    if (has(SetattrField.SIZE)) {
      const errno = inode instanceof File ? this.#resize(inode, change.size) : Errno.EISDIR;
      if (errno !== Errno.OK) return errno;
      inode.touch("content");
    }
    if (has(SetattrField.MODE)) inode.attributes.mode = inode.type | (change.mode & 0o7777);
    if (has(SetattrField.UID)) inode.attributes.uid = change.uid;
    if (has(SetattrField.GID)) inode.attributes.gid = change.gid;
    if (has(SetattrField.KILL_SUIDGID) || has(SetattrField.UID | SetattrField.GID)) inode.dropPrivileges();
    inode.touch("metadata");
    const { ctime, ctimeNs } = inode.attributes;
    if (has(SetattrField.ATIME_NOW)) inode.setTime("atime", ctime, ctimeNs);
    else if (has(SetattrField.ATIME)) inode.setTime("atime", change.atime, change.atimeNs);
    if (has(SetattrField.MTIME_NOW)) inode.setTime("mtime", ctime, ctimeNs);
    else if (has(SetattrField.MTIME)) inode.setTime("mtime", change.mtime, change.mtimeNs);
    reply.attributes(inode.attributes, VALID_MS);
    return Errno.OK;
  }

  readlink(node: number, _caller: Caller, reply: Reply): Result {
    const inode = this.#nodes.get(node);
    if (!(inode instanceof Link)) return Errno.EINVAL;
    reply.text(inode.target);
    return Errno.OK;
  }

  symlink(parent: number, name: string, target: string, caller: Caller, reply: Reply): Result {
    return this.#add(parent, name, () => new Link(this.#nextIno++, target, caller), reply);
  }

  mknod(parent: number, name: string, mode: number, _rdev: number, caller: Caller, reply: Reply): Result {
    const type = mode & FileType.MASK;
    if (type === FileType.CHARACTER || type === FileType.BLOCK) return Errno.EPERM;
    if (type !== FileType.REGULAR && type !== FileType.FIFO && type !== FileType.SOCKET) return Errno.EINVAL;
    return this.#add(parent, name, () => this.#newFile(mode, caller), reply);
  }

  mkdir(parent: number, name: string, mode: number, caller: Caller, reply: Reply): Result {
    const make = () => {
      const child = new Directory(this.#nextIno++, FileType.DIRECTORY | (mode & 0o7777), caller);
      child.attributes.nlink = 2;
      return child;
    };
    return this.#add(parent, name, make, reply);
  }

  unlink(parent: number, name: string): Result {
    const directory = this.#directory(parent);
    if (typeof directory === "number") return directory;
    const inode = directory.entries.get(name);
    if (inode === undefined) return Errno.ENOENT;
    if (inode instanceof Directory) return Errno.EISDIR;
    this.#detach(directory, name, inode);
    return Errno.OK;
  }

  rmdir(parent: number, name: string): Result {
    const directory = this.#directory(parent);
    if (typeof directory === "number") return directory;
    const inode = directory.entries.get(name);
    if (inode === undefined) return Errno.ENOENT;
    if (!(inode instanceof Directory)) return Errno.ENOTDIR;
    if (inode.entries.size > 0) return Errno.ENOTEMPTY;
    this.#detach(directory, name, inode);
    return Errno.OK;
  }

  rename(parent: number, name: string, newParent: number, newName: string, flags: number): Result {
    if ((flags & ~(Rename.NOREPLACE | Rename.EXCHANGE)) !== 0) return Errno.EINVAL;
    const from = this.#directory(parent);
    const to = this.#directory(newParent);
    if (typeof from === "number") return from;
    if (typeof to === "number") return to;
    const moved = from.entries.get(name);
    const target = to.entries.get(newName);
    if (moved === undefined) return Errno.ENOENT;
    if (moved instanceof Directory && isWithin(to, moved)) return Errno.EINVAL;
    if ((flags & Rename.EXCHANGE) !== 0) {
      if (target === undefined) return Errno.ENOENT;
      if (target instanceof Directory && isWithin(from, target)) return Errno.EINVAL;
      take(to, newName, target);
      take(from, name, moved);
      place(from, name, target);
    } else {
      if (target === moved) return Errno.OK;
      const errno = target === undefined ? Errno.OK : refusalToReplace(moved, target, flags);
      if (errno !== Errno.OK) return errno;
      if (target !== undefined) this.#detach(to, newName, target);
      take(from, name, moved);
    }
    place(to, newName, moved);
    moved.touch("metadata");
    from.touch("content");
    to.touch("content");
    return Errno.OK;
  }

  link(node: number, newParent: number, newName: string, _caller: Caller, reply: Reply): Result {
    const directory = this.#directory(newParent);
    if (typeof directory === "number") return directory;
    const inode = this.#nodes.get(node);
    if (inode === undefined) return Errno.ESTALE;
    if (inode instanceof Directory) return Errno.EPERM;
    if (directory.entries.has(newName)) return Errno.EEXIST;
    place(directory, newName, inode);
    inode.attributes.nlink++;
    inode.touch("metadata");
    directory.touch("content");
    this.#hand(inode, reply);
    return Errno.OK;
  }

  // A file needs nothing but its node, so all open files share the handle 0.
  open(node: number, flags: number, _caller: Caller, reply: Reply): Result {
    const inode = this.#nodes.get(node);
    if (inode === undefined) return Errno.ESTALE;
    if (inode instanceof File && (flags & Open.TRUNC) !== 0) {
      this.#resize(inode, 0);
      inode.dropPrivileges();
      inode.touch("content");
    }
    reply.opened(node, 0, OpenFlag.KEEP_CACHE | OpenFlag.NOFLUSH);
    return Errno.OK;
  }

  create(parent: number, name: string, flags: number, mode: number, caller: Caller, reply: Reply): Result {
    const directory = this.#directory(parent);
    if (typeof directory === "number") return directory;
    const existing = directory.entries.get(name);
    if (existing !== undefined) {
      if ((flags & Open.EXCL) !== 0) return Errno.EEXIST;
      if (existing instanceof Directory) return Errno.EISDIR;
      this.#hand(existing, reply);
      return this.open(existing.nodeId, flags, caller, reply);
    }
    const errno = this.#add(parent, name, () => this.#newFile(FileType.REGULAR | (mode & 0o7777), caller), reply);
    if (errno === Errno.OK)
      reply.opened(directory.entries.get(name)!.nodeId, 0, OpenFlag.KEEP_CACHE | OpenFlag.NOFLUSH);
    return errno;
  }

  tmpfile(parent: number, _flags: number, mode: number, caller: Caller, reply: Reply): Result {
    const directory = this.#directory(parent);
    if (typeof directory === "number") return directory;
    if (this.#inodes >= this.#limits.inodes) return Errno.ENOSPC;
    const file = this.#newFile(FileType.REGULAR | (mode & 0o7777), caller);
    file.attributes.nlink = 0;
    this.#inodes++;
    this.#hand(file, reply);
    reply.opened(file.nodeId, 0, OpenFlag.KEEP_CACHE | OpenFlag.NOFLUSH);
    return Errno.OK;
  }

  read(node: number, _handle: number, offset: number, size: number, reply: Reply): Result {
    const file = this.#file(node);
    if (typeof file === "number") return file;
    const start = Math.min(offset, file.size);
    const end = Math.min(start + size, file.size);
    reply.setDataLength(file.content.copy(reply.bytes, reply.dataOffset, start, end));
    return Errno.OK;
  }

  write(
    node: number,
    _handle: number,
    offset: number,
    data: Buffer,
    _openFlags: number,
    _caller: Caller,
    reply: Reply,
  ): Result {
    const file = this.#file(node);
    if (typeof file === "number") return file;
    const errno = this.#resize(file, Math.max(file.size, offset + data.length));
    if (errno !== Errno.OK) return errno;
    data.copy(file.content, offset);
    file.dropPrivileges();
    file.touch("content");
    reply.written(data.length);
    return Errno.OK;
  }

  // There is nothing more lasting than memory to bring the data to.
  fsync(): Result {
    return Errno.OK;
  }

  fsyncdir(): Result {
    return Errno.OK;
  }

  fallocate(node: number, _handle: number, offset: number, length: number, mode: number): Result {
    const file = this.#file(node);
    if (typeof file === "number") return file;
    if (mode === (FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE)) {
      file.content.fill(0, Math.min(offset, file.size), Math.min(offset + length, file.size));
      file.touch("content");
      return Errno.OK;
    }
    if (mode === FALLOC_KEEP_SIZE) return Errno.OK;
    return mode === 0 ? this.#resize(file, Math.max(file.size, offset + length)) : Errno.EOPNOTSUPP;
  }

  lseek(node: number, _handle: number, offset: number, whence: number, reply: Reply): Result {
    const file = this.#file(node);
    if (typeof file === "number") return file;
    if (whence !== Seek.DATA && whence !== Seek.HOLE) return Errno.EINVAL;
    if (offset < 0 || offset >= file.size) return Errno.ENXIO;
    reply.number(whence === Seek.DATA ? offset : file.size);
    return Errno.OK;
  }

  copyFileRange(range: CopyRange): CopyResult {
    const from = this.#file(range.node);
    const to = this.#file(range.targetNode);
    if (typeof from === "number") return { errno: from };
    if (typeof to === "number") return { errno: to };
    if (range.offset < 0 || range.targetOffset < 0) return { errno: Errno.EINVAL };
    const copied = Math.max(0, Math.min(range.length, from.size - range.offset));
    if (copied === 0) return { copied };
    const errno = this.#resize(to, Math.max(to.size, range.targetOffset + copied));
    if (errno !== Errno.OK) return { errno };
    from.content.copy(to.content, range.targetOffset, range.offset, range.offset + copied);
    to.dropPrivileges();
    to.touch("content");
    return { copied };
  }

  opendir(node: number, _flags: number, _caller: Caller, reply: Reply): Result {
    const directory = this.#directory(node);
    if (typeof directory === "number") return directory;
    const handle = this.#directories.open([[".", directory], ["..", directory.parent], ...directory.entries]);
    reply.opened(node, handle, 0);
    return Errno.OK;
  }

  readdir(_node: number, handle: number, offset: number, size: number, _caller: Caller, reply: Reply): Result {
    const entries = this.#directories.get(handle);
    if (entries === undefined) return Errno.EBADF;
    for (let i = offset; i < entries.length; i++) {
      const [name, inode] = entries[i]!;
      if (!reply.directoryEntry(size, inode.attributes.ino, i + 1, inode.type >> 12, name)) break;
    }
    return Errno.OK;
  }

  readdirplus(_node: number, handle: number, offset: number, size: number, _caller: Caller, reply: Reply): Result {
    const entries = this.#directories.get(handle);
    if (entries === undefined) return Errno.EBADF;
    for (let i = offset; i < entries.length; i++) {
      const [name, inode] = entries[i]!;
      if (!reply.fitsPlus(size, name)) break;
      // "." and ".." count no lookup; nor does what was deleted meanwhile and has no name to be known by.
      const granted = name === "." || name === ".." || inode.attributes.nlink === 0 ? 0 : this.#grant(inode);
      reply.directoryEntryPlus(size, granted, inode.attributes, VALID_MS, VALID_MS, i + 1, inode.type >> 12, name);
    }
    return Errno.OK;
  }

  releasedir(_node: number, handle: number): void {
    this.#directories.close(handle);
  }

  // Only the user who mounted can come in, and that user may do everything.
  access(): Result {
    return Errno.OK;
  }

  statfs(_node: number, reply: Reply): Result {
    reply.statistics({
      blocks: Math.floor(this.#limits.bytes / BLOCK_SIZE),
      blocksFree: Math.floor((this.#limits.bytes - this.#bytes) / BLOCK_SIZE),
      files: this.#limits.inodes,
      filesFree: this.#limits.inodes - this.#inodes,
      blockSize: BLOCK_SIZE,
      nameLength: NAME_MAX,
    });
    return Errno.OK;
  }

  setxattr(node: number, name: string, value: Buffer, flags: number): Result {
    const inode = this.#nodes.get(node);
    if (inode === undefined) return Errno.ESTALE;
    if (name.length > NAME_MAX) return Errno.ERANGE;
    const exists = inode.xattrs.has(name);
    if (exists && (flags & XATTR_CREATE) !== 0) return Errno.EEXIST;
    if (!exists && (flags & XATTR_REPLACE) !== 0) return Errno.ENODATA;
    inode.xattrs.set(name, Buffer.from(value)); // a copy: the receive buffer is used again
    inode.touch("metadata");
    return Errno.OK;
  }

  getxattr(node: number, name: string, size: number, _caller: Caller, reply: Reply): Result {
    const value = this.#nodes.get(node)?.xattrs.get(name);
    if (value === undefined) return Errno.ENODATA;
    return answerXattr(value, size, reply);
  }

  listxattr(node: number, size: number, _caller: Caller, reply: Reply): Result {
    const inode = this.#nodes.get(node);
    if (inode === undefined) return Errno.ESTALE;
    const names = [...inode.xattrs.keys()].map((name) => `${name}\0`).join("");
    return answerXattr(Buffer.from(names, "latin1"), size, reply);
  }

  removexattr(node: number, name: string): Result {
    return this.#nodes.get(node)?.xattrs.delete(name) ? Errno.OK : Errno.ENODATA;
  }

  #directory(node: number): Directory | Result {
    const inode = this.#nodes.get(node);
    if (inode === undefined) return Errno.ESTALE;
    return inode instanceof Directory ? inode : Errno.ENOTDIR;
  }

  #file(node: number): File | Result {
    const inode = this.#nodes.get(node);
    if (inode === undefined) return Errno.ESTALE;
    if (inode instanceof File) return inode;
    return inode instanceof Directory ? Errno.EISDIR : Errno.EINVAL;
  }

  #newFile(mode: number, owner: Caller): File {
    return new File(this.#nextIno++, mode, owner);
  }

  #add(parent: number, name: string, make: () => Inode, reply: Reply): Result {
    const directory = this.#directory(parent);
    if (typeof directory === "number") return directory;
    if (directory.entries.has(name)) return Errno.EEXIST;
    // A directory that was removed but is still someone's working directory takes no new entries.
    if (directory.attributes.nlink === 0) return Errno.ENOENT;
    if (this.#inodes >= this.#limits.inodes) return Errno.ENOSPC;
    const inode = make();
    place(directory, name, inode);
    this.#inodes++;
    directory.touch("content");
    this.#hand(inode, reply);
    return Errno.OK;
  }

  /** The entry reply: tells the kernel of the inode and counts the lookup. */
  #hand(inode: Inode, reply: Reply): void {
    reply.entry(this.#grant(inode), inode.attributes, VALID_MS, VALID_MS);
  }

  #grant(inode: Inode): number {
    if (inode.nodeId === 0) inode.nodeId = this.#nodes.allocate(inode);
    this.#nodes.grant(inode.nodeId);
    return inode.nodeId;
  }

  #detach(directory: Directory, name: string, inode: Inode): void {
    take(directory, name, inode);
    directory.touch("content");
    inode.attributes.nlink = inode instanceof Directory ? 0 : inode.attributes.nlink - 1;
    inode.touch("metadata");
    this.#dropIfUnreachable(inode);
  }

  #dropIfUnreachable(inode: Inode): void {
    if (inode.attributes.nlink > 0 || inode.nodeId !== 0) return;
    this.#inodes--;
    if (inode instanceof File) this.#bytes -= inode.size;
  }

  #resize(file: File, size: number): Result {
    const bytes = this.#bytes + size - file.size;
    if (bytes > this.#limits.bytes && size > file.size) return size > this.#limits.bytes ? Errno.EFBIG : Errno.ENOSPC;
    file.resize(size);
    this.#bytes = bytes;
    return Errno.OK;
  }
}

function isWithin(directory: Directory, ancestor: Directory): boolean {
  for (let at = directory; ; at = at.parent) {
    if (at === ancestor) return true;
    if (at.parent === at) return false;
  }
}

function refusalToReplace(moved: Inode, target: Inode, flags: number): Result {
  if ((flags & Rename.NOREPLACE) !== 0) return Errno.EEXIST;
  if (!(target instanceof Directory)) return moved instanceof Directory ? Errno.ENOTDIR : Errno.OK;
  if (!(moved instanceof Directory)) return Errno.EISDIR;
  return target.entries.size > 0 ? Errno.ENOTEMPTY : Errno.OK;
}

// A directory has a link from its parent, one from its own ".", and one from the ".." of each directory in it.
function place(directory: Directory, name: string, inode: Inode): void {
  directory.entries.set(name, inode);
  if (!(inode instanceof Directory)) return;
  inode.parent = directory;
  directory.attributes.nlink++;
}

function take(directory: Directory, name: string, inode: Inode): void {
  directory.entries.delete(name);
  if (inode instanceof Directory) directory.attributes.nlink--;
}

/** A size of 0 asks how large the answer would be. */
function answerXattr(value: Buffer, size: number, reply: Reply): Result {
  if (size === 0) reply.xattrSize(value.length);
  else if (value.length > size) return Errno.ERANGE;
  else reply.setDataLength(value.copy(reply.bytes, reply.dataOffset));
  return Errno.OK;
}
