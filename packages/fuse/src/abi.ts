// The FUSE kernel ABI (include/uapi/linux/fuse.h) as data. All integers are in host byte order, every structure is a
// multiple of eight bytes long, and a name is a NUL-terminated byte string.

export const KERNEL_MAJOR = 7;
/** The newest minor version whose messages we know. */
export const KERNEL_MINOR = 45;
/** The oldest we talk to: Linux 4.2. Everything we send unasked for has its own INIT flag beyond that. */
export const OLDEST_MINOR = 23;

export const ROOT_ID = 1;

export const Opcode = {
  Lookup: 1,
  Forget: 2,
  Getattr: 3,
  Setattr: 4,
  Readlink: 5,
  Symlink: 6,
  Mknod: 8,
  Mkdir: 9,
  Unlink: 10,
  Rmdir: 11,
  Rename: 12,
  Link: 13,
  Open: 14,
  Read: 15,
  Write: 16,
  Statfs: 17,
  Release: 18,
  Fsync: 20,
  Setxattr: 21,
  Getxattr: 22,
  Listxattr: 23,
  Removexattr: 24,
  Flush: 25,
  Init: 26,
  Opendir: 27,
  Readdir: 28,
  Releasedir: 29,
  Fsyncdir: 30,
  Access: 34,
  Create: 35,
  Interrupt: 36,
  Destroy: 38,
  Ioctl: 39,
  Poll: 40,
  BatchForget: 42,
  Fallocate: 43,
  Readdirplus: 44,
  Rename2: 45,
  Lseek: 46,
  CopyFileRange: 47,
  Tmpfile: 51,
  Statx: 52,
  CopyFileRange64: 53,
} as const;

/** Above every opcode of a request we know. */
export const OPCODE_LIMIT = 64;

export type OpcodeName = keyof typeof Opcode;

const NAME_OF = new Map<number, OpcodeName>(Object.entries(Opcode).map(([name, value]) => [value, name as OpcodeName]));

export function opcodeName(opcode: number): string {
  return NAME_OF.get(opcode) ?? `opcode ${opcode}`;
}

/** struct fuse_in_header: len, opcode, unique, nodeid, uid, gid, pid, total_extlen, padding. */
export const IN_HEADER_SIZE = 40;
/** struct fuse_out_header: len, error, unique. */
export const OUT_HEADER_SIZE = 16;

/** Bytes of fixed structure that each request carries after its header; what follows is names or data. */
export const FIXED_SIZE = {
  Lookup: 0,
  Forget: 8,
  Getattr: 16,
  Setattr: 88,
  Readlink: 0,
  Symlink: 0,
  Mknod: 16,
  Mkdir: 8,
  Unlink: 0,
  Rmdir: 0,
  Rename: 8,
  Link: 8,
  Open: 8,
  Read: 40,
  Write: 40,
  Statfs: 0,
  Release: 24,
  Fsync: 16,
  Setxattr: 8,
  Getxattr: 8,
  Listxattr: 8,
  Removexattr: 0,
  Flush: 24,
  Init: 16,
  Opendir: 8,
  Readdir: 40,
  Releasedir: 24,
  Fsyncdir: 16,
  Access: 8,
  Create: 16,
  Interrupt: 8,
  Destroy: 0,
  Ioctl: 32,
  Poll: 24,
  BatchForget: 8,
  Fallocate: 32,
  Readdirplus: 40,
  Rename2: 16,
  Lseek: 24,
  CopyFileRange: 56,
  Tmpfile: 16,
  Statx: 24,
  CopyFileRange64: 56,
} as const satisfies Record<OpcodeName, number>;

/** INIT flags, bits 0 to 31. */
export const InitFlag = {
  ASYNC_READ: 1 << 0,
  ATOMIC_O_TRUNC: 1 << 3,
  EXPORT_SUPPORT: 1 << 4,
  BIG_WRITES: 1 << 5,
  DONT_MASK: 1 << 6,
  AUTO_INVAL_DATA: 1 << 12,
  DO_READDIRPLUS: 1 << 13,
  READDIRPLUS_AUTO: 1 << 14,
  PARALLEL_DIROPS: 1 << 18,
  HANDLE_KILLPRIV: 1 << 19,
  MAX_PAGES: 1 << 22,
  CACHE_SYMLINKS: 1 << 23,
  EXPLICIT_INVAL_DATA: 1 << 25,
  HANDLE_KILLPRIV_V2: 1 << 28,
  SETXATTR_EXT: 1 << 29,
  INIT_EXT: 1 << 30,
} as const;

/** INIT flags, bits 32 to 63, as they stand in flags2. */
export const InitFlag2 = {
  HAS_EXPIRE_ONLY: 1 << 3,
  PASSTHROUGH: 1 << 5,
  NO_EXPORT_SUPPORT: 1 << 6,
} as const;

/** What an OPEN reply may ask for. */
export const OpenFlag = {
  DIRECT_IO: 1 << 0,
  KEEP_CACHE: 1 << 1,
  CACHE_DIR: 1 << 3,
  NOFLUSH: 1 << 5,
  PASSTHROUGH: 1 << 7,
} as const;

/** Which fields of a SETATTR count. */
export const SetattrField = {
  MODE: 1 << 0,
  UID: 1 << 1,
  GID: 1 << 2,
  SIZE: 1 << 3,
  ATIME: 1 << 4,
  MTIME: 1 << 5,
  FH: 1 << 6,
  ATIME_NOW: 1 << 7,
  MTIME_NOW: 1 << 8,
  CTIME: 1 << 10,
  KILL_SUIDGID: 1 << 11,
} as const;

/** Codes of the notifications a server may write; they stand in the error field of a header with unique 0. */
export const NotifyCode = { INVAL_INODE: 2, INVAL_ENTRY: 3, STORE: 4, DELETE: 6, INC_EPOCH: 8 } as const;
/** The first minor version that knows INC_EPOCH. */
export const EPOCH_MINOR = 44;
