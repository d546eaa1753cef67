import { Errno, syscalls } from "@agentfense/fuse";
import { walkDirectory } from "./directory-reader.ts";
import { type Subdirectory, walkDirectories } from "./directory-walk.ts";
import type { Node } from "./node.ts";
import type { Walk } from "./walks.ts";
import { isReserved, KEPT_PREFIX } from "./whiteouts.ts";

const { FileType } = syscalls;

export interface QuotaLimits {
  readonly bytes?: number | undefined;
  readonly files?: number | undefined;
}

/** What something takes of a quota. */
export interface QuotaUse {
  readonly bytes: number;
  readonly files: number;
}

/** Space is charged in blocks of this size; statfs shows the same. */
export const BLOCK_SIZE = 4096;
/** What stat calls a block. */
const STAT_BLOCK = 512;

/** A preallocation that may not fit is made in steps of this part of the quota; see Files.fallocate. */
const STEPS = 256;
const SMALLEST_STEP = 64 << 10;

/** What a file of this size is charged at least. */
export function wholeBlocks(size: number): number {
  return Math.ceil(size / BLOCK_SIZE) * BLOCK_SIZE;
}

/** A file of the delta as the account knows it. */
type Account = Pick<Node, "deltaInode" | "size">;

/** What all file systems under one quota use together. */
interface Used {
  bytes: number;
  files: number;
  /** Space on the disk that is held for orphans (see Openings) and can be had at once; not part of what is used. */
  reclaimable: number;
  /** Each gives some of the reclaimable space up; false when it has none. */
  readonly reclaimers: (() => boolean)[];
}

/**
 * What the delta may hold. A regular file is charged its size in whole blocks, so that a sparse giant counts in full, or the
 * blocks it has on the disk when those are more: space preallocated behind its end, extended attributes. Files are entries
 * of every kind. Taking more than there is fails as a whole; giving back is always possible.
 *
 * The disk's count of blocks changes at times without a request (a file system puts off what it allocates). So what was
 * charged for them is remembered for each file, and a file gives back exactly what was taken for it.
 *
 * The delta and the home of a sandbox have one quota: the second is made beside the first. Each knows its own files, whose
 * inode numbers may be those of another disk, and both count in `used`.
 */
export class Quota {
  readonly limits: QuotaLimits;
  readonly used: Used;
  /** What a file is charged beyond its size, by its inode in the delta; most files are not here. */
  readonly #beyondSize = new Map<number, number>();

  constructor({ bytes, files }: QuotaLimits, beside?: Quota) {
    this.used = beside?.used ?? { bytes: 0, files: 0, reclaimable: 0, reclaimers: [] };
    this.limits = { bytes: bytes && wholeBlocks(bytes), files };
  }

  /** Counts what is there already, whether there is room for it or not. */
  take({ bytes, files }: QuotaUse): void {
    this.used.bytes += bytes;
    this.used.files += files;
  }

  takeFiles(count: number): boolean {
    if (count > 0 && this.limits.files !== undefined && this.used.files + count > this.limits.files) return false;
    this.used.files += count;
    return true;
  }

  takeBytes(count: number): boolean {
    if (count > 0 && !this.makeRoom(count)) return false;
    this.used.bytes += count;
    return true;
  }

  /** True if so much more may be used, on the disk too; for 0 bytes, unless too much is used already. */
  makeRoom(bytes: number): boolean {
    const limit = this.limits.bytes ?? Number.POSITIVE_INFINITY;
    if (this.used.bytes + bytes > limit) return false;
    const { used } = this;
    while (used.bytes + used.reclaimable + bytes > limit && used.reclaimers.some((reclaim) => reclaim()));
    return true;
  }

  /** What a file has been charged. */
  chargeOf({ deltaInode, size }: Account): number {
    return wholeBlocks(size) + (this.#beyondSize.get(deltaInode) ?? 0);
  }

  /** Charges a file what it takes now; that space is used already, whether there is room for it or not. */
  settle(file: Account, stat: syscalls.Stat): void {
    this.used.bytes -= this.chargeOf(file);
    file.size = stat.size;
    const beyond = stat.blocks * STAT_BLOCK - wholeBlocks(stat.size);
    if (beyond > 0) this.#beyondSize.set(file.deltaInode, beyond);
    else this.#beyondSize.delete(file.deltaInode);
    this.used.bytes += this.chargeOf(file);
  }

  /** Charges a file that is not charged for. */
  charge(file: Account, stat: syscalls.Stat): void {
    file.size = 0;
    this.#beyondSize.delete(file.deltaInode);
    this.settle(file, stat);
  }

  /** Gives back what was taken for a file, and returns how much that was. */
  free(file: Account): number {
    const charge = this.chargeOf(file);
    this.#beyondSize.delete(file.deltaInode);
    this.used.bytes -= charge;
    return charge;
  }

  /** How much may be allocated before the account is looked at again, when it is not known how much of it is new. */
  get step(): number {
    return Math.max(SMALLEST_STEP, wholeBlocks((this.limits.bytes ?? 0) / STEPS));
  }

  /** Counts what a delta holds that nobody uses yet. */
  *measure(tree: number): Walk<void> {
    const stat = new syscalls.Stat();
    const linked = new Set<number>();
    const take = (directory: number, name: string): boolean => {
      const isKept = name.startsWith(KEPT_PREFIX);
      if ((isReserved(name) && !isKept) || syscalls.statat(directory, name, stat) < 0) return false;
      if (!isKept) this.used.files += 1;
      if (stat.type === FileType.REGULAR && !linked.has(stat.ino)) {
        if (stat.nlink > 1) linked.add(stat.ino);
        this.charge({ deltaInode: stat.ino, size: 0 }, stat);
      }
      return stat.type === FileType.DIRECTORY;
    };
    yield* walkDirectories(tree, undefined, function* (directory) {
      const subdirectories: Subdirectory<undefined>[] = [];
      const code = yield* walkDirectory(directory, (name) => {
        if (take(directory, name)) subdirectories.push([name, undefined]);
      });
      if (code < 0 && -code !== Errno.ENOENT) throw new Error(`a directory of a delta cannot be read: errno ${-code}`);
      return subdirectories;
    });
  }

  /** A name of a file that nobody has open is gone, with the file when it was the last. */
  forget(stat: syscalls.Stat): void {
    this.takeFiles(-1);
    if (stat.type === FileType.REGULAR && stat.nlink === 1) this.free({ deltaInode: stat.ino, size: stat.size });
  }
}
