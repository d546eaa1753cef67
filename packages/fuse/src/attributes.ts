/** What stat shows of an entry. Times are seconds and nanoseconds; blocks are of 512 bytes. */
export class Attributes {
  ino = 0;
  size = 0;
  blocks = 0;
  atime = 0;
  atimeNs = 0;
  mtime = 0;
  mtimeNs = 0;
  ctime = 0;
  ctimeNs = 0;
  mode = 0;
  nlink = 1;
  uid = 0;
  gid = 0;
  blksize = 4096;
}

/** The changes a SETATTR asks for; only the fields named in `fields` (SetattrField bits) count. */
export interface AttributeChange {
  fields: number;
  /** The open handle the change came through (ftruncate, fchmod …), or 0. */
  handle: number;
  size: number;
  atime: number;
  atimeNs: number;
  mtime: number;
  mtimeNs: number;
  mode: number;
  uid: number;
  gid: number;
}

/** What statfs shows, in units of `blockSize`. */
export interface FileSystemStatistics {
  readonly blocks: number;
  readonly blocksFree: number;
  readonly files: number;
  readonly filesFree: number;
  readonly blockSize: number;
  readonly nameLength: number;
}
