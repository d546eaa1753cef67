import koffi from "koffi";
import { call, result } from "./result.ts";

// The one place that talks to libc. Every function returns what the kernel returned, or the negated errno: a missing
// file is an everyday answer here and must not cost an exception.
//
// Names are byte strings: JavaScript strings with one character per byte (latin1), so that names that are not UTF-8
// survive. They are copied, NUL-terminated, into one of two scratch areas, which is why no function here is reentrant;
// each thread has its own copy of this module.

const libc = koffi.load(null);

const NAME_AREA = 8192;
const firstName = Buffer.alloc(NAME_AREA);
const secondName = Buffer.alloc(NAME_AREA);

function put(area: Buffer, name: string): Buffer {
  // Longer than anything the kernel takes: cut, and the kernel says ENAMETOOLONG.
  const length = area.write(name, 0, NAME_AREA - 1, "latin1");
  area[length] = 0;
  return area;
}

const IS_ARM = process.arch === "arm64";
const NR = IS_ARM
  ? { getdents64: 61, openat2: 437, openTree: 428, mountSetattr: 442, fchmodat2: 452 }
  : { getdents64: 217, openat2: 437, openTree: 428, mountSetattr: 442, fchmodat2: 452 };

const c = {
  open: libc.func("int open(void *, int, unsigned int)"),
  openat: libc.func("int openat(int, void *, int, unsigned int)"),
  close: libc.func("int close(int)"),
  dup: libc.func("int dup(int)"),
  read: libc.func("int64_t read(int, void *, size_t)"),
  write: libc.func("int64_t write(int, void *, size_t)"),
  pread: libc.func("int64_t pread64(int, void *, size_t, int64_t)"),
  pwrite: libc.func("int64_t pwrite64(int, void *, size_t, int64_t)"),
  statx: libc.func("int statx(int, void *, int, unsigned int, void *)"),
  mkdirat: libc.func("int mkdirat(int, void *, unsigned int)"),
  unlinkat: libc.func("int unlinkat(int, void *, int)"),
  renameat2: libc.func("int renameat2(int, void *, int, void *, unsigned int)"),
  linkat: libc.func("int linkat(int, void *, int, void *, int)"),
  symlinkat: libc.func("int symlinkat(void *, int, void *)"),
  readlinkat: libc.func("int64_t readlinkat(int, void *, void *, size_t)"),
  mknodat: libc.func("int mknodat(int, void *, unsigned int, uint64_t)"),
  fchownat: libc.func("int fchownat(int, void *, unsigned int, unsigned int, int)"),
  fchmod: libc.func("int fchmod(int, unsigned int)"),
  fchmodat: libc.func("int fchmodat(int, void *, unsigned int, int)"),
  utimensat: libc.func("int utimensat(int, void *, void *, int)"),
  ftruncate: libc.func("int ftruncate64(int, int64_t)"),
  fallocate: libc.func("int fallocate64(int, int, int64_t, int64_t)"),
  lseek: libc.func("int64_t lseek64(int, int64_t, int)"),
  copyFileRange: libc.func("int64_t copy_file_range(int, void *, int, void *, size_t, unsigned int)"),
  fsync: libc.func("int fsync(int)"),
  fdatasync: libc.func("int fdatasync(int)"),
  syncfs: libc.func("int syncfs(int)"),
  ioctl: libc.func("int ioctl(int, unsigned long, void *)"),
  ioctlInt: libc.func("int ioctl(int, unsigned long, long)"),
  lgetxattr: libc.func("int64_t lgetxattr(void *, void *, void *, size_t)"),
  llistxattr: libc.func("int64_t llistxattr(void *, void *, size_t)"),
  lsetxattr: libc.func("int lsetxattr(void *, void *, void *, size_t, int)"),
  lremovexattr: libc.func("int lremovexattr(void *, void *)"),
  flistxattr: libc.func("int64_t flistxattr(int, void *, size_t)"),
  fsetxattr: libc.func("int fsetxattr(int, void *, void *, size_t, int)"),
  getxattr: libc.func("int64_t getxattr(void *, void *, void *, size_t)"),
  listxattr: libc.func("int64_t listxattr(void *, void *, size_t)"),
  setxattr: libc.func("int setxattr(void *, void *, void *, size_t, int)"),
  removexattr: libc.func("int removexattr(void *, void *)"),
  mount: libc.func("int mount(void *, void *, void *, unsigned long, void *)"),
  umount2: libc.func("int umount2(void *, int)"),
  epollCreate: libc.func("int epoll_create1(int)"),
  epollCtl: libc.func("int epoll_ctl(int, int, int, void *)"),
  epollWait: libc.func("int epoll_wait(int, void *, int, int)"),
  eventfd: libc.func("int eventfd(unsigned int, int)"),
  inotifyInit: libc.func("int inotify_init1(int)"),
  inotifyAddWatch: libc.func("int inotify_add_watch(int, void *, uint32_t)"),
  inotifyRemoveWatch: libc.func("int inotify_rm_watch(int, int)"),
  flock: libc.func("int flock(int, int)"),
  fcntl: libc.func("int fcntl(int, int, long)"),
  socketpair: libc.func("int socketpair(int, int, int, void *)"),
  recvmsg: libc.func("int64_t recvmsg(int, void *, int)"),
  unshare: libc.func("int unshare(int)"),
  umask: libc.func("unsigned int umask(unsigned int)"),
  getdents64: libc.func("long syscall(long, int, void *, size_t)"),
  openat2: libc.func("long syscall(long, int, void *, void *, size_t)"),
  openTree: libc.func("long syscall(long, int, void *, unsigned int)"),
  fchmodat2: libc.func("long syscall(long, int, void *, unsigned int, unsigned int)"),
  mountSetattr: libc.func("long syscall(long, int, void *, unsigned int, void *, size_t)"),
};

export const AT_FDCWD = -100;
export const AT_SYMLINK_NOFOLLOW = 0x100;
export const AT_REMOVEDIR = 0x200;
const AT_SYMLINK_FOLLOW = 0x400;
const AT_EMPTY_PATH = 0x1000;
const AT_STATX_DONT_SYNC = 0x4000;

// O_DIRECTORY and O_NOFOLLOW have other values on arm64; the kernel passes them to us in its own numbering too.
export const Open = {
  RDONLY: 0,
  WRONLY: 1,
  RDWR: 2,
  ACCMODE: 3,
  CREAT: 0o100,
  EXCL: 0o200,
  TRUNC: 0o1000,
  APPEND: 0o2000,
  NONBLOCK: 0o4000,
  DSYNC: 0o10000,
  SYNC: 0o4010000,
  DIRECTORY: IS_ARM ? 0o40000 : 0o200000,
  NOFOLLOW: IS_ARM ? 0o100000 : 0o400000,
  NOATIME: 0o1000000,
  CLOEXEC: 0o2000000,
  PATH: 0o10000000,
  TMPFILE: 0o20000000 | (IS_ARM ? 0o40000 : 0o200000),
  /** Set by the kernel in a FUSE OPEN when the file is opened to be executed (FMODE_EXEC). */
  EXEC: 0x20,
} as const;

export const Rename = { NOREPLACE: 1, EXCHANGE: 2, WHITEOUT: 4 } as const;
export const Seek = { SET: 0, CUR: 1, END: 2, DATA: 3, HOLE: 4 } as const;
export const Mount = { NOSUID: 2, NODEV: 4, DETACH: 2, PRIVATE: 1 << 18 } as const;

/** Type bits of a mode. */
export const FileType = {
  MASK: 0o170000,
  FIFO: 0o010000,
  CHARACTER: 0o020000,
  DIRECTORY: 0o040000,
  BLOCK: 0o060000,
  REGULAR: 0o100000,
  SYMLINK: 0o120000,
  SOCKET: 0o140000,
} as const;

export function open(path: string, flags: number, mode = 0): number {
  return call(() => c.open(put(firstName, path), flags | Open.CLOEXEC, mode));
}

/** Opens one name in a directory, never following a symlink; the name must be a single component. */
export function openat(directory: number, name: string, flags: number, mode = 0): number {
  return call(() => c.openat(directory, put(firstName, name), flags | Open.CLOEXEC | Open.NOFOLLOW, mode));
}

const RESOLVE_NO_MAGICLINKS = 2;
const RESOLVE_NO_SYMLINKS = 4;
const RESOLVE_BENEATH = 8;
const openHow = new BigUint64Array(3);
openHow[2] = BigInt(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

/** Opens a relative path of several components that stays beneath the directory and crosses no symlink. */
export function openBeneath(directory: number, path: string, flags: number): number {
  openHow[0] = BigInt(flags | Open.CLOEXEC | Open.NOFOLLOW);
  openHow[1] = 0n;
  return call(() => c.openat2(NR.openat2, directory, put(firstName, path), openHow, 24));
}

export function close(fd: number): number {
  return call(() => c.close(fd));
}

export function dup(fd: number): number {
  return call(() => c.dup(fd));
}

export function read(fd: number, into: Uint8Array, length: number): number {
  return result(c.read(fd, into, length));
}

export function write(fd: number, from: Uint8Array, length: number): number {
  return result(c.write(fd, from, length));
}

/** write(2) on a thread of libuv's pool, for writes that may block on a lock whose holder waits for this thread. */
export function writeAsync(fd: number, from: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    c.write.async(fd, from, from.length, (error: unknown, written: number) => {
      if (error) reject(error);
      else resolve(result(written));
    });
  });
}

export function pread(fd: number, into: Uint8Array, length: number, offset: number): number {
  return call(() => c.pread(fd, into, length, offset));
}

export function pwrite(fd: number, from: Uint8Array, length: number, offset: number): number {
  return call(() => c.pwrite(fd, from, length, offset));
}

const STATX_BASIC = 0x7ff;
const STATX_BTIME = 0x800;
const statxBytes = new ArrayBuffer(256);
const statxBuffer = new Uint8Array(statxBytes);
const statxU32 = new Uint32Array(statxBytes);
const statxU16 = new Uint16Array(statxBytes);

/** The kernel's struct statx as plain numbers; filled in place, so that a stat allocates nothing. */
export class Stat {
  mode = 0;
  nlink = 0;
  uid = 0;
  gid = 0;
  ino = 0;
  size = 0;
  blocks = 0;
  blksize = 4096;
  atime = 0;
  atimeNs = 0;
  mtime = 0;
  mtimeNs = 0;
  ctime = 0;
  ctimeNs = 0;
  /** Birth time; 0 when the file system does not keep one. */
  btime = 0;
  btimeNs = 0;
  devMajor = 0;
  devMinor = 0;

  get type(): number {
    return this.mode & FileType.MASK;
  }
}

function u64(index: number): number {
  return statxU32[index]! + statxU32[index + 1]! * 0x1_0000_0000;
}

function i64(index: number): number {
  return statxU32[index]! + (statxU32[index + 1]! | 0) * 0x1_0000_0000;
}

function fill(stat: Stat): void {
  stat.blksize = statxU32[1]!;
  stat.nlink = statxU32[4]!;
  stat.uid = statxU32[5]!;
  stat.gid = statxU32[6]!;
  stat.mode = statxU16[14]!;
  stat.ino = u64(8);
  stat.size = u64(10);
  stat.blocks = u64(12);
  stat.atime = i64(16);
  stat.atimeNs = statxU32[18]!;
  const hasBirth = (statxU32[0]! & STATX_BTIME) !== 0;
  stat.btime = hasBirth ? i64(20) : 0;
  stat.btimeNs = hasBirth ? statxU32[22]! : 0;
  stat.ctime = i64(24);
  stat.ctimeNs = statxU32[26]!;
  stat.mtime = i64(28);
  stat.mtimeNs = statxU32[30]!;
  stat.devMajor = statxU32[34]!;
  stat.devMinor = statxU32[35]!;
}

/** lstat of one name in a directory. */
export function statat(directory: number, name: string, stat: Stat): number {
  const area = put(firstName, name);
  const mask = STATX_BASIC | STATX_BTIME;
  const code = call(() => c.statx(directory, area, AT_SYMLINK_NOFOLLOW, mask, statxBuffer));
  if (code < 0) return code;
  fill(stat);
  return 0;
}

const EMPTY_NAME = Buffer.alloc(1);

/** stat of an open descriptor, O_PATH ones included. */
export function fstat(fd: number, stat: Stat): number {
  const flags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW;
  const code = call(() => c.statx(fd, EMPTY_NAME, flags, STATX_BASIC | STATX_BTIME, statxBuffer));
  if (code < 0) return code;
  fill(stat);
  return 0;
}

/** What the kernel knows of a path, without a question to the file system: of the root of a mount, its device. */
export function statKnown(path: string, stat: Stat): number {
  const area = put(firstName, path);
  const code = call(() => c.statx(AT_FDCWD, area, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, 0, statxBuffer));
  if (code < 0) return code;
  fill(stat);
  return 0;
}

export function mkdirat(directory: number, name: string, mode: number): number {
  return call(() => c.mkdirat(directory, put(firstName, name), mode));
}

export function unlinkat(directory: number, name: string, flags = 0): number {
  return call(() => c.unlinkat(directory, put(firstName, name), flags));
}

export function renameat2(from: number, name: string, to: number, newName: string, flags = 0): number {
  return call(() => c.renameat2(from, put(firstName, name), to, put(secondName, newName), flags));
}

export function linkat(from: number, name: string, to: number, newName: string): number {
  return call(() => c.linkat(from, put(firstName, name), to, put(secondName, newName), 0));
}

/** Gives a name to an open file, nameless ones (O_TMPFILE) included. */
export function linkDescriptor(fd: number, to: number, newName: string): number {
  const code = call(() => c.linkat(fd, EMPTY_NAME, to, put(secondName, newName), AT_EMPTY_PATH));
  if (-code !== ENOENT) return code;
  // Without privileges (before Linux 6.10): by the magic link.
  const source = put(firstName, `/proc/self/fd/${fd}`);
  return call(() => c.linkat(AT_FDCWD, source, to, put(secondName, newName), AT_SYMLINK_FOLLOW));
}

export function symlinkat(target: string, directory: number, name: string): number {
  return call(() => c.symlinkat(put(firstName, target), directory, put(secondName, name)));
}

/** Reads a link's target as bytes into the buffer; with an empty name the descriptor itself is the link. */
export function readlinkat(directory: number, name: string, into: Uint8Array): number {
  return call(() => c.readlinkat(directory, put(firstName, name), into, into.length));
}

export function mknodat(directory: number, name: string, mode: number): number {
  return call(() => c.mknodat(directory, put(firstName, name), mode, 0));
}

/** -1 leaves the owner or group as it is. */
export function fchownat(directory: number, name: string, uid: number, gid: number): number {
  const flags = name === "" ? AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW : AT_SYMLINK_NOFOLLOW;
  return call(() => c.fchownat(directory, put(firstName, name), uid >>> 0, gid >>> 0, flags));
}

export function fchmod(fd: number, mode: number): number {
  return call(() => c.fchmod(fd, mode));
}

const ENOENT = 2;
const EINVAL = 22;
const ENOSYS = 38;

/** chmod of one name in a directory that does not follow a symlink. */
export function chmodat(directory: number, name: string, mode: number): number {
  const code = call(() => c.fchmodat2(NR.fchmodat2, directory, put(firstName, name), mode, AT_SYMLINK_NOFOLLOW));
  if (-code !== ENOSYS) return code;
  // Before Linux 6.6: through a descriptor of the thing itself.
  const fd = openat(directory, name, Open.PATH);
  if (fd < 0) return fd;
  const held = chmodHeld(fd, mode);
  close(fd);
  return held;
}

/** chmod through an O_PATH descriptor, which fchmod refuses; the magic link names the very file that is held. */
export function chmodHeld(fd: number, mode: number): number {
  return call(() => c.fchmodat(AT_FDCWD, put(firstName, `/proc/self/fd/${fd}`), mode, 0));
}

export const UTIME_NOW = 0x3fffffff;
export const UTIME_OMIT = 0x3ffffffe;
const times = new BigInt64Array(4);

/** Times in seconds and nanoseconds (or UTIME_NOW, UTIME_OMIT); an empty name means the descriptor itself. */
export function utimensat(
  directory: number,
  name: string,
  atime: number,
  atimeNs: number,
  mtime: number,
  mtimeNs: number,
): number {
  times[0] = BigInt(atime);
  times[1] = BigInt(atimeNs);
  times[2] = BigInt(mtime);
  times[3] = BigInt(mtimeNs);
  const flags = name === "" ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW;
  const code = call(() => c.utimensat(directory, put(firstName, name), times, flags));
  if (name !== "" || -code !== EINVAL) return code;
  // Before Linux 5.8: by the magic link, which names the very file that is held.
  return call(() => c.utimensat(AT_FDCWD, put(firstName, `/proc/self/fd/${directory}`), times, 0));
}

export function ftruncate(fd: number, size: number): number {
  return call(() => c.ftruncate(fd, size));
}

export function fallocate(fd: number, mode: number, offset: number, length: number): number {
  return call(() => c.fallocate(fd, mode, offset, length));
}

export function lseek(fd: number, offset: number, whence: number): number {
  return call(() => c.lseek(fd, offset, whence));
}

/** Goes on reading a directory where a `d_off` says, which can be any 64 bits. 0 or a negated errno. */
export function seekDirectory(fd: number, position: bigint): number {
  return call(() => (c.lseek(fd, position, Seek.SET) < 0 ? -1 : 0));
}

const copyOffsets = new BigInt64Array(2);

export function copyFileRange(from: number, fromOffset: number, to: number, toOffset: number, length: number): number {
  copyOffsets[0] = BigInt(fromOffset);
  copyOffsets[1] = BigInt(toOffset);
  return call(() => c.copyFileRange(from, copyOffsets.subarray(0, 1), to, copyOffsets.subarray(1, 2), length, 0));
}

export function fsync(fd: number): number {
  return call(() => c.fsync(fd));
}

export function fdatasync(fd: number): number {
  return call(() => c.fdatasync(fd));
}

/** Writes out everything of the file system that holds the file. */
export function syncfs(fd: number): number {
  return call(() => c.syncfs(fd));
}

const FICLONE = 0x40049409;

/** Shares the blocks of one file with another, where the file system can (btrfs, XFS). */
export function cloneFile(from: number, to: number): number {
  return call(() => c.ioctlInt(to, FICLONE, from));
}

const FS_IOC_GETFLAGS = 0x80086601;
const FS_IOC_SETFLAGS = 0x40086602;
const FS_TOPDIR_FL = 0x20000;

/**
 * Has ext4 lay the directories that are made in this one far from each other, or no longer. 1, 0 if it was so already, or a
 * negated errno: other file systems refuse.
 */
export function setSpreading(directory: number, spreads: boolean): number {
  const flags = new Uint32Array(2);
  const code = call(() => c.ioctl(directory, FS_IOC_GETFLAGS, flags));
  if (code < 0) return code;
  if (((flags[0]! & FS_TOPDIR_FL) !== 0) === spreads) return 0;
  flags[0]! ^= FS_TOPDIR_FL;
  return call(() => c.ioctl(directory, FS_IOC_SETFLAGS, flags)) || 1;
}

const FUSE_DEV_IOC_BACKING_OPEN = 0x4010e501;
const FUSE_DEV_IOC_BACKING_CLOSE = 0x4004e502;
const backingMap = new Uint32Array(4);

/** Registers an open file for passthrough; the id belongs to the connection. */
export function backingOpen(fuseFd: number, fd: number): number {
  backingMap[0] = fd;
  backingMap[1] = 0;
  backingMap[2] = 0;
  backingMap[3] = 0;
  return call(() => c.ioctl(fuseFd, FUSE_DEV_IOC_BACKING_OPEN, backingMap));
}

export function backingClose(fuseFd: number, backingId: number): number {
  backingMap[0] = backingId;
  return call(() => c.ioctl(fuseFd, FUSE_DEV_IOC_BACKING_CLOSE, backingMap));
}

/** Fills the buffer with struct linux_dirent64 records and returns how many bytes there are. */
export function getdents64(fd: number, into: Uint8Array): number {
  return call(() => c.getdents64(NR.getdents64, fd, into, into.length));
}

/** Lists the attributes of an open file; an O_PATH descriptor does not do. */
export function flistxattr(fd: number, into: Uint8Array, size: number): number {
  return call(() => c.flistxattr(fd, into, size));
}

export function fsetxattr(fd: number, name: string, value: Uint8Array, flags: number): number {
  return call(() => c.fsetxattr(fd, put(firstName, name), value, value.length, flags));
}

/** Other extended attributes go by path, since O_PATH descriptors refuse them; the l-variants do not follow the last name. */
export function getxattr(path: string, name: string, into: Uint8Array, size: number): number {
  return call(() => c.lgetxattr(put(firstName, path), put(secondName, name), into, size));
}

export function listxattr(path: string, into: Uint8Array, size: number): number {
  return call(() => c.llistxattr(put(firstName, path), into, size));
}

export function setxattr(path: string, name: string, value: Uint8Array, flags: number): number {
  return call(() => c.lsetxattr(put(firstName, path), put(secondName, name), value, value.length, flags));
}

export function removexattr(path: string, name: string): number {
  return call(() => c.lremovexattr(put(firstName, path), put(secondName, name)));
}

// The following variants are for magic links (/proc/self/fd/N), which name an open file and lead nowhere else.
export function getxattrFollowing(path: string, name: string, into: Uint8Array, size: number): number {
  return call(() => c.getxattr(put(firstName, path), put(secondName, name), into, size));
}

export function listxattrFollowing(path: string, into: Uint8Array, size: number): number {
  return call(() => c.listxattr(put(firstName, path), into, size));
}

export function setxattrFollowing(path: string, name: string, value: Uint8Array, flags: number): number {
  return call(() => c.setxattr(put(firstName, path), put(secondName, name), value, value.length, flags));
}

export function removexattrFollowing(path: string, name: string): number {
  return call(() => c.removexattr(put(firstName, path), put(secondName, name)));
}

export function mount(source: string, target: string, type: string, flags: number, data: string): number {
  const strings = [source, target, type, data].map((text) => Buffer.from(`${text}\0`, "latin1"));
  return call(() => c.mount(strings[0], strings[1], strings[2], flags, strings[3]));
}

export function umount(target: string, flags: number): number {
  return call(() => c.umount2(put(firstName, target), flags));
}

const OPEN_TREE_CLONE = 1;
const MOUNT_ATTR_RDONLY = 1n;
const MOUNT_ATTR_NOSUID = 2n;
const MOUNT_ATTR_NODEV = 4n;
const MOUNT_ATTR_NOATIME = 0x10n;
const MOUNT_ATTR__ATIME = 0x70n;

/**
 * A private, detached, read-only, noatime copy of the mount that holds a directory. Nobody can reach it but through the
 * descriptor, it goes away with it, and not even passthrough can write through it. Needs CAP_SYS_ADMIN.
 */
export function openReadOnlyTree(path: string): number {
  const tree = call(() => c.openTree(NR.openTree, AT_FDCWD, put(firstName, path), OPEN_TREE_CLONE | Open.CLOEXEC));
  if (tree < 0) return tree;
  const attributes = new BigUint64Array(4);
  attributes[0] = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME;
  attributes[1] = MOUNT_ATTR__ATIME;
  const code = call(() => c.mountSetattr(NR.mountSetattr, tree, EMPTY_NAME, AT_EMPTY_PATH, attributes, 32));
  if (code < 0) {
    close(tree);
    return code;
  }
  return tree;
}

export const EpollControl = { ADD: 1, DELETE: 2 } as const;
export const EPOLLIN = 1;
// struct epoll_event is packed on x86-64 only.
const EPOLL_EVENT_WORDS = process.arch === "x64" ? 3 : 4;
const EPOLL_DATA_WORD = process.arch === "x64" ? 1 : 2;

export function epollCreate(): number {
  return call(() => c.epollCreate(Open.CLOEXEC));
}

export function epollControl(epoll: number, operation: number, fd: number): number {
  const event = new Uint32Array(4);
  event[0] = EPOLLIN;
  event[EPOLL_DATA_WORD] = fd;
  return call(() => c.epollCtl(epoll, operation, fd, event));
}

const MAX_EVENTS = 64;
const epollEvents = new Uint32Array(MAX_EVENTS * EPOLL_EVENT_WORDS);

/** How many descriptors are ready; epollReady(i) names them. */
export function epollWait(epoll: number, timeoutMs: number): number {
  return result(c.epollWait(epoll, epollEvents, MAX_EVENTS, timeoutMs));
}

export function epollReady(index: number): number {
  return epollEvents[index * EPOLL_EVENT_WORDS + EPOLL_DATA_WORD]!;
}

const EFD_NONBLOCK = 0o4000;

export function eventfd(): number {
  return call(() => c.eventfd(0, EFD_NONBLOCK | Open.CLOEXEC));
}

/** Bits of a mask: what to watch for, and what happened. */
export const Inotify = {
  MODIFY: 0x2,
  ATTRIB: 0x4,
  MOVED_FROM: 0x40,
  MOVED_TO: 0x80,
  CREATE: 0x100,
  DELETE: 0x200,
  DELETE_SELF: 0x400,
  MOVE_SELF: 0x800,
  UNMOUNT: 0x2000,
  Q_OVERFLOW: 0x4000,
  IGNORED: 0x8000,
  ONLYDIR: 0x0100_0000,
  ISDIR: 0x4000_0000,
} as const;

/** A descriptor to read events from; a read without any answers EAGAIN. */
export function inotifyInit(): number {
  return call(() => c.inotifyInit(Open.NONBLOCK | Open.CLOEXEC));
}

/** The watch descriptor: the one it already has, when the same inode is watched again. */
export function inotifyAddWatch(inotify: number, path: string, mask: number): number {
  return call(() => c.inotifyAddWatch(inotify, put(firstName, path), mask));
}

export function inotifyRemoveWatch(inotify: number, watch: number): number {
  return call(() => c.inotifyRemoveWatch(inotify, watch));
}

const LOCK_EX = 2;
const LOCK_NB = 4;

/** Takes an exclusive lock that ends with the descriptor; EAGAIN if somebody else has it. */
export function tryLock(fd: number): number {
  return result(c.flock(fd, LOCK_EX | LOCK_NB));
}

const F_SETFL = 4;

export function setNonblocking(fd: number): number {
  return call(() => c.fcntl(fd, F_SETFL, Open.NONBLOCK));
}

const AF_UNIX = 1;
const SOCK_STREAM = 1;

/** A connected pair of Unix sockets, close-on-exec. */
export function socketpair(): [number, number] | number {
  const pair = new Int32Array(2);
  const code = call(() => c.socketpair(AF_UNIX, SOCK_STREAM | Open.CLOEXEC, 0, pair));
  return code < 0 ? code : [pair[0]!, pair[1]!];
}

const MSG_DONTWAIT = 0x40;
const MSG_CMSG_CLOEXEC = 0x40000000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;

/** Takes one descriptor that the peer sent with SCM_RIGHTS, if one has arrived. */
export function receiveDescriptor(socket: number): number {
  const payload = Buffer.alloc(8);
  const vector = new BigUint64Array([koffi.address(payload), 8n]);
  const control = new Uint32Array(16);
  const controlBytes = new Uint8Array(control.buffer);
  const header = new BigUint64Array([0n, 0n, koffi.address(vector), 1n, koffi.address(controlBytes), 64n, 0n]);
  const code = result(c.recvmsg(socket, header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
  if (code < 0) return code;
  const carriesDescriptor = header[5]! >= 20n && control[2] === SOL_SOCKET && control[3] === SCM_RIGHTS;
  return carriesDescriptor ? control[4]! : -71; // EPROTO
}

const CLONE_FS = 0x200;

/** Gives the calling thread an umask of its own, set to 0, so that modes arrive as the caller asked for them. */
export function isolateUmask(): number {
  const code = call(() => c.unshare(CLONE_FS));
  if (code === 0) c.umask(0);
  return code;
}
