import { OUT_HEADER_SIZE } from "./abi.ts";
import type { Attributes, FileSystemStatistics } from "./attributes.ts";

const HIGH = 0x1_0000_0000;
const ENTRY_SIZE = 128;
const ATTR_OFFSET_IN_ENTRY = 40;
const DIRENT_HEADER = 24;

/**
 * The reply under construction. Handlers call the one method that fits their operation; `data` handlers write straight
 * into `bytes` from `dataOffset` on and then call `setDataLength`.
 */
export class Reply {
  readonly bytes: Buffer;
  /** Where data of a READ, READLINK, GETXATTR … begins. */
  readonly dataOffset = OUT_HEADER_SIZE;
  readonly #words: Uint32Array;
  length = OUT_HEADER_SIZE;
  /** Node ids this reply hands out: each is one lookup the kernel will have to forget. */
  readonly granted: number[] = [];
  /** The handle this reply hands out, if any; kept so that it can be released when the reply reaches nobody. */
  openedNode = 0;
  openedHandle = 0;

  constructor(capacity: number) {
    const memory = new ArrayBuffer(capacity);
    this.bytes = Buffer.from(memory);
    this.#words = new Uint32Array(memory);
  }

  reset(): void {
    this.length = OUT_HEADER_SIZE;
    if (this.granted.length > 0) this.granted.length = 0;
    this.openedNode = 0;
  }

  /** Completes the header. An error reply carries nothing else. */
  seal(uniqueLow: number, uniqueHigh: number, errno: number): number {
    if (errno !== 0) this.length = OUT_HEADER_SIZE;
    this.#words[0] = this.length;
    this.#words[1] = -errno;
    this.#words[2] = uniqueLow;
    this.#words[3] = uniqueHigh;
    return this.length;
  }

  /** How much data the buffer can take. */
  get dataCapacity(): number {
    return this.bytes.length - OUT_HEADER_SIZE;
  }

  setDataLength(length: number): void {
    this.length = OUT_HEADER_SIZE + length;
  }

  /** A byte string as data. */
  text(value: string): void {
    this.setDataLength(this.bytes.write(value, OUT_HEADER_SIZE, "latin1"));
  }

  /** struct fuse_entry_out. A node id of 0 is a negative entry: "not there, and you may remember that". */
  entry(nodeId: number, attributes: Attributes, entryValidMs: number, attrValidMs: number): void {
    this.#entryAt(OUT_HEADER_SIZE, nodeId, attributes, entryValidMs, attrValidMs);
    this.length = OUT_HEADER_SIZE + ENTRY_SIZE;
    if (nodeId !== 0) this.granted.push(nodeId);
  }

  absent(validMs: number): void {
    this.#words.fill(0, OUT_HEADER_SIZE >> 2, (OUT_HEADER_SIZE + ENTRY_SIZE) >> 2);
    this.#duration((OUT_HEADER_SIZE + 16) >> 2, (OUT_HEADER_SIZE + 32) >> 2, validMs);
    this.length = OUT_HEADER_SIZE + ENTRY_SIZE;
  }

  /** struct fuse_attr_out. */
  attributes(attributes: Attributes, validMs: number): void {
    this.#duration(OUT_HEADER_SIZE >> 2, (OUT_HEADER_SIZE + 8) >> 2, validMs);
    this.#words[(OUT_HEADER_SIZE + 12) >> 2] = 0;
    this.#attributesAt(OUT_HEADER_SIZE + 16, attributes);
    this.length = OUT_HEADER_SIZE + 104;
  }

  /** struct fuse_open_out; after an entry() it makes the reply to CREATE. */
  opened(nodeId: number, handle: number, flags: number, backingId = 0): void {
    const index = this.length >> 2;
    this.#u64(index, handle);
    this.#words[index + 2] = flags;
    this.#words[index + 3] = backingId;
    this.length += 16;
    this.openedNode = nodeId;
    this.openedHandle = handle;
  }

  /** struct fuse_write_out, and the reply to COPY_FILE_RANGE. */
  written(count: number): void {
    this.#words[OUT_HEADER_SIZE >> 2] = count;
    this.#words[(OUT_HEADER_SIZE >> 2) + 1] = 0;
    this.length = OUT_HEADER_SIZE + 8;
  }

  /** A single 64-bit number: LSEEK, COPY_FILE_RANGE_64. */
  number(value: number): void {
    this.#u64(OUT_HEADER_SIZE >> 2, value);
    this.length = OUT_HEADER_SIZE + 8;
  }

  /** struct fuse_getxattr_out: the answer to "how large is it". */
  xattrSize(size: number): void {
    this.written(size);
  }

  /** struct fuse_statfs_out. */
  statistics(statistics: FileSystemStatistics): void {
    const index = OUT_HEADER_SIZE >> 2;
    this.#words.fill(0, index, index + 20);
    this.#u64(index, statistics.blocks);
    this.#u64(index + 2, statistics.blocksFree);
    this.#u64(index + 4, statistics.blocksFree);
    this.#u64(index + 6, statistics.files);
    this.#u64(index + 8, statistics.filesFree);
    this.#words[index + 10] = statistics.blockSize;
    this.#words[index + 11] = statistics.nameLength;
    this.#words[index + 12] = statistics.blockSize;
    this.length = OUT_HEADER_SIZE + 80;
  }

  /** struct fuse_init_out. */
  init(fields: {
    minor: number;
    maxReadahead: number;
    flags: number;
    flags2: number;
    maxBackground: number;
    congestionThreshold: number;
    maxWrite: number;
    maxPages: number;
    maxStackDepth: number;
  }): void {
    const index = OUT_HEADER_SIZE >> 2;
    this.#words.fill(0, index, index + 16);
    this.#words[index] = 7;
    this.#words[index + 1] = fields.minor;
    this.#words[index + 2] = fields.maxReadahead;
    this.#words[index + 3] = fields.flags;
    this.#words[index + 4] = fields.maxBackground | (fields.congestionThreshold << 16);
    this.#words[index + 5] = fields.maxWrite;
    this.#words[index + 6] = 1; // time_gran: nanoseconds
    this.#words[index + 7] = fields.maxPages;
    this.#words[index + 8] = fields.flags2;
    this.#words[index + 9] = fields.maxStackDepth;
    this.length = OUT_HEADER_SIZE + 64;
  }

  /** Appends one entry of a READDIR; false when it does not fit into `limit` bytes of data. */
  directoryEntry(limit: number, ino: number, offset: number, type: number, name: string): boolean {
    const size = (DIRENT_HEADER + name.length + 7) & ~7;
    if (this.length - OUT_HEADER_SIZE + size > limit) return false;
    this.#direntAt(this.length, ino, offset, type, name, size);
    this.length += size;
    return true;
  }

  /** Appends one entry of a READDIRPLUS. A node id of 0 gives the name without attributes and grants nothing. */
  directoryEntryPlus(
    limit: number,
    nodeId: number,
    attributes: Attributes,
    entryValidMs: number,
    attrValidMs: number,
    offset: number,
    type: number,
    name: string,
  ): boolean {
    const size = (ENTRY_SIZE + DIRENT_HEADER + name.length + 7) & ~7;
    if (!this.fitsPlus(limit, name)) return false;
    if (nodeId === 0) this.#words.fill(0, this.length >> 2, (this.length + ENTRY_SIZE) >> 2);
    else {
      this.#entryAt(this.length, nodeId, attributes, entryValidMs, attrValidMs);
      this.granted.push(nodeId);
    }
    this.#direntAt(this.length + ENTRY_SIZE, attributes.ino, offset, type, name, size - ENTRY_SIZE);
    this.length += size;
    return true;
  }

  fitsPlus(limit: number, name: string): boolean {
    const size = (ENTRY_SIZE + DIRENT_HEADER + name.length + 7) & ~7;
    return this.length - OUT_HEADER_SIZE + size <= limit;
  }

  #direntAt(start: number, ino: number, offset: number, type: number, name: string, size: number): void {
    const index = start >> 2;
    this.#u64(index, ino);
    this.#u64(index + 2, offset);
    this.#words[index + 4] = name.length;
    this.#words[index + 5] = type;
    // The padding behind the name must not carry bytes of an earlier reply.
    this.#words[(start + size - 8) >> 2] = 0;
    this.#words[(start + size - 4) >> 2] = 0;
    this.bytes.write(name, start + DIRENT_HEADER, "latin1");
  }

  #entryAt(start: number, nodeId: number, attributes: Attributes, entryValidMs: number, attrValidMs: number): void {
    const index = start >> 2;
    this.#u64(index, nodeId);
    this.#words[index + 2] = 0; // generation: node ids are never used twice
    this.#words[index + 3] = 0;
    this.#duration(index + 4, index + 8, entryValidMs);
    this.#duration(index + 6, index + 9, attrValidMs);
    this.#attributesAt(start + ATTR_OFFSET_IN_ENTRY, attributes);
  }

  #attributesAt(start: number, attributes: Attributes): void {
    const index = start >> 2;
    const words = this.#words;
    this.#u64(index, attributes.ino);
    this.#u64(index + 2, attributes.size);
    this.#u64(index + 4, attributes.blocks);
    this.#u64(index + 6, attributes.atime);
    this.#u64(index + 8, attributes.mtime);
    this.#u64(index + 10, attributes.ctime);
    words[index + 12] = attributes.atimeNs;
    words[index + 13] = attributes.mtimeNs;
    words[index + 14] = attributes.ctimeNs;
    words[index + 15] = attributes.mode;
    words[index + 16] = attributes.nlink;
    words[index + 17] = attributes.uid;
    words[index + 18] = attributes.gid;
    words[index + 19] = 0; // rdev: there are no device nodes
    words[index + 20] = attributes.blksize;
    words[index + 21] = 0;
  }

  #duration(secondsIndex: number, nanosecondsIndex: number, milliseconds: number): void {
    const seconds = Math.floor(milliseconds / 1000);
    this.#u64(secondsIndex, seconds);
    this.#words[nanosecondsIndex] = (milliseconds - seconds * 1000) * 1_000_000;
  }

  // Negative numbers (times before 1970) come out as two's complement.
  #u64(index: number, value: number): void {
    this.#words[index] = value;
    this.#words[index + 1] = Math.floor(value / HIGH);
  }
}
