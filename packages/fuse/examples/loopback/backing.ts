import { type Attributes, Errno, type Result, SetattrField, syscalls as sys } from "@agentfense/fuse";

const { FileType, Open } = sys;

/** Something in the mirrored tree, held by an O_PATH descriptor: it stays reachable through renames and unlinks. */
export interface Backing {
  readonly fd: number;
  /** Device and inode number: two names of one file are one node. */
  readonly key: string;
  nodeId: number;
}

/** The name under which an O_PATH descriptor can be opened for real; the magic link leads to the held file only. */
export function magicLink(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

export function keyOf(stat: sys.Stat): string {
  return `${stat.devMajor}:${stat.devMinor}:${stat.ino}`;
}

export function attributesOf(stat: sys.Stat, into: Attributes): Attributes {
  into.ino = stat.ino;
  into.size = stat.size;
  into.blocks = stat.blocks;
  into.atime = stat.atime;
  into.atimeNs = stat.atimeNs;
  into.mtime = stat.mtime;
  into.mtimeNs = stat.mtimeNs;
  into.ctime = stat.ctime;
  into.ctimeNs = stat.ctimeNs;
  into.mode = stat.mode;
  into.nlink = stat.nlink;
  into.uid = stat.uid;
  into.gid = stat.gid;
  into.blksize = stat.blksize;
  return into;
}

/** Changes the size through a descriptor opened for writing, one of its own if none is at hand. */
export function resize(held: number, opened: number | undefined, size: number): Result {
  if (opened !== undefined) return errnoOf(sys.ftruncate(opened, size));
  const fd = sys.open(magicLink(held), Open.WRONLY | Open.NONBLOCK);
  if (fd < 0) return -fd;
  const code = sys.ftruncate(fd, size);
  sys.close(fd);
  return errnoOf(code);
}

export function setTimes(
  held: number,
  change: { fields: number; atime: number; atimeNs: number; mtime: number; mtimeNs: number },
): Result {
  const nanoseconds = (set: number, toNow: number, value: number) => {
    if ((change.fields & toNow) !== 0) return sys.UTIME_NOW;
    return (change.fields & set) !== 0 ? value : sys.UTIME_OMIT;
  };
  const atimeNs = nanoseconds(SetattrField.ATIME, SetattrField.ATIME_NOW, change.atimeNs);
  const mtimeNs = nanoseconds(SetattrField.MTIME, SetattrField.MTIME_NOW, change.mtimeNs);
  return errnoOf(sys.utimensat(held, "", change.atime, atimeNs, change.mtime, mtimeNs));
}

const SET_IDS = 0o6000;
const SET_UID = 0o4000;
const SET_GID = 0o2000;
const GROUP_EXECUTE = 0o010;
const stat = new sys.Stat();

/** Writing takes the set-id bits away; the backing file system does not do it for a server that runs as root. */
export function dropPrivileges(fd: number): void {
  if (sys.fstat(fd, stat) < 0 || stat.type !== FileType.REGULAR || (stat.mode & SET_IDS) === 0) return;
  const kept = stat.mode & ~SET_UID & ((stat.mode & GROUP_EXECUTE) !== 0 ? ~SET_GID : ~0);
  sys.fchmod(fd, kept & 0o7777);
}

/** One entry of an open directory: the name as bytes, the inode number and the type as in a mode, shifted. */
export interface DirectoryEntry {
  readonly name: string;
  readonly ino: number;
  readonly type: number;
}

const DIRENT_NAME = 19;

/** Reads a directory to its end. Offsets into the list stay below 2^53, which the backing's own (hashes) do not. */
export function readEntries(fd: number): DirectoryEntry[] | { readonly errno: number } {
  const entries: DirectoryEntry[] = [];
  const buffer = Buffer.alloc(32768);
  for (;;) {
    const length = sys.getdents64(fd, buffer);
    if (length < 0) return { errno: -length };
    if (length === 0) return entries;
    for (let at = 0; at < length; at += buffer.readUInt16LE(at + 16)) {
      const end = buffer.indexOf(0, at + DIRENT_NAME);
      entries.push({
        name: buffer.toString("latin1", at + DIRENT_NAME, end),
        ino: Number(buffer.readBigUInt64LE(at)),
        type: buffer[at + 18]!,
      });
    }
  }
}

/** The errno of a call that returns nothing else of interest. */
export function errnoOf(code: number): Result {
  return code < 0 ? -code : Errno.OK;
}
