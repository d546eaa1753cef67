import { Errno, syscalls } from "@agentfense/fuse";

const { Seek } = syscalls;

/** There is more to copy. */
export const MORE = -1;

/** In a file of this size no hole is looked for: it is copied faster than asked about, and through memory. */
const SMALL = 64 << 10;
const memory = Buffer.alloc(SMALL);

/** Copies a file's data to a new file, holes as holes, some of it at a time. */
export class Transfer {
  readonly #from: number;
  readonly #to: number;
  readonly #size: number;
  #offset = 0;
  #dataEnd = 0;
  #rangeCopyWorks: boolean;
  /** The file became shorter meanwhile; the copy has the size it was asked to have. */
  isShort = false;

  constructor(from: number, to: number, size: number) {
    this.#from = from;
    this.#to = to;
    this.#size = size;
    const isSmall = size <= SMALL;
    if (isSmall) this.#dataEnd = size;
    this.#rangeCopyWorks = !isSmall;
  }

  /** Copies up to `budget` bytes: 0 when all is done, MORE when there is more, or an errno. */
  step(budget: number): number {
    let left = budget;
    while (this.#offset < this.#size) {
      if (left <= 0) return MORE;
      if (this.#offset >= this.#dataEnd && !this.#findData()) break;
      const length = Math.min(left, this.#dataEnd - this.#offset);
      const copied = this.#copy(length);
      if (copied < 0) return -copied;
      this.isShort = copied === 0;
      if (this.isShort) break;
      this.#offset += copied;
      left -= copied;
    }
    if (this.#offset >= this.#size) return 0;
    const code = syscalls.ftruncate(this.#to, this.#size);
    return code < 0 ? -code : 0;
  }

  // Moves on to the next stretch of data; false when only a hole is left.
  #findData(): boolean {
    const start = syscalls.lseek(this.#from, this.#offset, Seek.DATA);
    if (start === -Errno.ENXIO) return false;
    if (start < 0) {
      this.#dataEnd = this.#size;
      return true;
    }
    const end = syscalls.lseek(this.#from, start, Seek.HOLE);
    this.#offset = start;
    this.#dataEnd = end < 0 ? this.#size : Math.min(end, this.#size);
    return start < this.#size;
  }

  #copy(length: number): number {
    if (this.#rangeCopyWorks) {
      const copied = syscalls.copyFileRange(this.#from, this.#offset, this.#to, this.#offset, length);
      if (copied > 0) return copied;
      // Other file systems, or one that cannot: through memory.
      if (copied < 0 && -copied !== Errno.EXDEV && -copied !== Errno.EINVAL && -copied !== Errno.EOPNOTSUPP)
        return copied;
      this.#rangeCopyWorks = false;
    }
    const buffer = length <= SMALL ? memory : Buffer.allocUnsafe(Math.min(length, 1 << 20));
    const read = syscalls.pread(this.#from, buffer, Math.min(length, buffer.length), this.#offset);
    return read <= 0 ? read : syscalls.pwrite(this.#to, buffer, read, this.#offset);
  }
}

/** Between two slices others get their turn. */
const SLICE = 8 << 20;

/** Copies a file's data, holes as holes. 0 or a negated errno, ESTALE when it is shorter by now; throws when the signal aborts. */
export async function copyData(from: number, to: number, size: number, signal?: AbortSignal): Promise<number> {
  if (syscalls.cloneFile(from, to) === 0) return 0;
  const transfer = new Transfer(from, to, size);
  for (let code = transfer.step(SLICE); ; code = transfer.step(SLICE)) {
    if (code !== MORE) return transfer.isShort ? -Errno.ESTALE : -code;
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
  }
}
