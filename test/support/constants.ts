import { constants as fs } from "node:fs";

/** The kernel's numbers, under the kernel's names. Those that differ between processors come from Node. */
export const O = {
  RDONLY: fs.O_RDONLY,
  WRONLY: fs.O_WRONLY,
  RDWR: fs.O_RDWR,
  /** Access mode 3: neither reading nor writing, but the permissions of both are checked. */
  NEITHER: 3,
  CREAT: fs.O_CREAT,
  EXCL: fs.O_EXCL,
  TRUNC: fs.O_TRUNC,
  APPEND: fs.O_APPEND,
  NONBLOCK: fs.O_NONBLOCK,
  SYNC: fs.O_SYNC,
  DIRECT: fs.O_DIRECT,
  DIRECTORY: fs.O_DIRECTORY,
  NOFOLLOW: fs.O_NOFOLLOW,
  NOATIME: fs.O_NOATIME,
  PATH: 0o10000000,
  TMPFILE: 0o20000000 | fs.O_DIRECTORY,
  CLOEXEC: 0o2000000,
} as const;

export const AT = {
  FDCWD: -100,
  SYMLINK_NOFOLLOW: 0x100,
  EACCESS: 0x200,
  REMOVEDIR: 0x200,
  HANDLE_FID: 0x200,
  SYMLINK_FOLLOW: 0x400,
  EMPTY_PATH: 0x1000,
  STATX_FORCE_SYNC: 0x2000,
  STATX_DONT_SYNC: 0x4000,
} as const;

export const RESOLVE = {
  NO_XDEV: 0x01,
  NO_MAGICLINKS: 0x02,
  NO_SYMLINKS: 0x04,
  BENEATH: 0x08,
  IN_ROOT: 0x10,
  CACHED: 0x20,
} as const;

export const RENAME = { NOREPLACE: 1, EXCHANGE: 2, WHITEOUT: 4 } as const;

/** Options of mount(2). */
export const MS = { NOSUID: 2, NODEV: 4, REMOUNT: 32 } as const;

/** What access(2) asks for. */
export const OK = { F: 0, X: 1, W: 2, R: 4 } as const;

export const S = {
  IFMT: 0o170000,
  IFSOCK: 0o140000,
  IFLNK: 0o120000,
  IFREG: 0o100000,
  IFBLK: 0o060000,
  IFDIR: 0o040000,
  IFCHR: 0o020000,
  IFIFO: 0o010000,
} as const;

export const PROT = { NONE: 0, READ: 1, WRITE: 2, EXEC: 4 } as const;
export const MAP = { SHARED: 1, PRIVATE: 2 } as const;
export const SEEK = { SET: 0, CUR: 1, END: 2, DATA: 3, HOLE: 4 } as const;
export const FALLOC = { KEEP_SIZE: 1, PUNCH_HOLE: 2, COLLAPSE_RANGE: 8, ZERO_RANGE: 16 } as const;
export const XATTR = { CREATE: 1, REPLACE: 2 } as const;
export const IN = { ALL_EVENTS: 0xfff, CREATE: 0x100, DELETE: 0x200, NONBLOCK: fs.O_NONBLOCK } as const;

/** utimensat(2): "the present time" and "leave this one alone", in the nanosecond field. */
export const UTIME = { NOW: 0x3fffffff, OMIT: 0x3ffffffe } as const;

export const IOCTL = {
  FICLONE: 0x40049409,
  FS_IOC_GETFLAGS: 0x80086601,
  FS_IOC_SETFLAGS: 0x40086602,
  FS_IOC_FSGETXATTR: 0x801c581f,
  FS_IOC_FSSETXATTR: 0x401c5820,
  FS_IOC_GETVERSION: 0x80087601,
} as const;
