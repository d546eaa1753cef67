import { NotifyCode, OUT_HEADER_SIZE } from "./abi.ts";
import { Errno } from "./errno.ts";
import * as sys from "./native/syscalls.ts";

function message(code: number, bodySize: number): { bytes: Buffer; view: DataView } {
  const bytes = Buffer.alloc(OUT_HEADER_SIZE + bodySize);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  view.setUint32(0, bytes.length, true);
  view.setInt32(4, code, true);
  return { bytes, view };
}

/** In struct fuse_notify_inval_entry_out (protocol 7.38); older kernels ignore it and drop the entry. */
const EXPIRE_ONLY = 1;

/**
 * "Forget this name": the entry is looked up again before its next use. With `expireOnly` it stays until that lookup finds
 * something else, so that somebody's working directory keeps its path.
 */
export function invalidateEntryMessage(parent: number, name: string, options: { expireOnly?: boolean } = {}): Buffer {
  const { bytes, view } = message(NotifyCode.INVAL_ENTRY, 16 + name.length + 1);
  view.setBigUint64(16, BigInt(parent), true);
  view.setUint32(24, name.length, true);
  view.setUint32(28, options.expireOnly ? EXPIRE_ONLY : 0, true);
  bytes.write(name, 32, "latin1");
  return bytes;
}

/** Attributes become stale; with an offset of 0 or more the cached pages from there on go too (length 0: to the end). */
export function invalidateInodeMessage(node: number, offset: number, length: number): Buffer {
  const { bytes, view } = message(NotifyCode.INVAL_INODE, 24);
  view.setBigUint64(16, BigInt(node), true);
  view.setBigInt64(24, BigInt(offset), true);
  view.setBigInt64(32, BigInt(length), true);
  return bytes;
}

/**
 * Drops the kernel's cached listing of a directory, from the serving thread: pages of a directory are never locked by
 * somebody who waits for an answer of ours, so this cannot block. The same for a file could.
 */
export function invalidateListing(fd: number, directory: number): number {
  const bytes = invalidateInodeMessage(directory, 0, 0);
  return sys.write(fd, bytes, bytes.length);
}

/** Makes the attributes of a node stale, from the serving thread: without pages to drop nothing is waited for. */
export function invalidateAttributes(fd: number, node: number): number {
  const bytes = invalidateInodeMessage(node, -1, 0);
  return sys.write(fd, bytes, bytes.length);
}

// struct fuse_notify_store_out: nodeid, offset, size, padding; the data follows.
const STORE_HEADER = OUT_HEADER_SIZE + 24;

/**
 * Puts the content of a file into the kernel's cache before anybody asks for it. It waits for locked pages, so the serving
 * thread may use it only for files that nobody has open: then no read of ours is outstanding that could hold one.
 */
export class ContentStore {
  readonly capacity: number;
  readonly #bytes: Buffer;
  readonly #view: DataView;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#bytes = Buffer.alloc(STORE_HEADER + capacity);
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.length);
    this.#view.setInt32(4, NotifyCode.STORE, true);
  }

  /** Reads a file whole and hands it to the kernel; true if the kernel took it. */
  push(connection: number, node: number, file: number): boolean {
    const length = sys.pread(file, this.#bytes.subarray(STORE_HEADER), this.capacity, 0);
    if (length <= 0) return false;
    const size = STORE_HEADER + length;
    this.#view.setUint32(0, size, true);
    this.#view.setUint32(16, node, true);
    this.#view.setUint32(20, Math.floor(node / 0x1_0000_0000), true);
    this.#view.setUint32(32, length, true);
    return sys.write(connection, this.#bytes, size) === size;
  }
}

/** Makes every cached name stale at once (protocol 7.44). Does not block, so the serving thread may send it. */
export function incrementEpoch(fd: number): number {
  const { bytes } = message(NotifyCode.INC_EPOCH, 0);
  return sys.write(fd, bytes, bytes.length);
}

/**
 * Sends notifications that may block on locks held by clients who wait for the serving thread. It therefore must run on
 * a thread with an event loop of its own, never on the one that serves; writes happen on libuv's pool.
 */
export class Notifier {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** True if the kernel knew the thing; false if it had nothing cached. */
  async send(bytes: Buffer): Promise<boolean> {
    const written = await sys.writeAsync(this.#fd, bytes);
    if (written >= 0) return true;
    if (-written === Errno.ENOENT || -written === Errno.ENODEV || -written === Errno.ENOTCONN) return false;
    // An older kernel without this notification: its caches simply run out.
    if (-written === Errno.EINVAL) return false;
    throw new Error(`notification failed: errno ${-written}`);
  }
}
