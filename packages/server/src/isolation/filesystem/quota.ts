import { syscalls } from "@agentfense/fuse";
import { readDirectory } from "./directory-reader.ts";
import { isReserved } from "./whiteouts.ts";

const { FileType, Open } = syscalls;

export interface QuotaLimits {
  readonly bytes?: number;
  readonly files?: number;
}

/**
 * What the delta may hold. Bytes are apparent sizes of regular files, so a sparse giant counts in full; files are entries
 * of every kind. Taking more than there is fails as a whole; giving back is always possible.
 */
export class Quota {
  readonly limits: QuotaLimits;
  usedBytes = 0;
  usedFiles = 0;

  constructor(limits: QuotaLimits) {
    this.limits = limits;
  }

  takeBytes(count: number): boolean {
    if (count > 0 && this.limits.bytes !== undefined && this.usedBytes + count > this.limits.bytes) return false;
    this.usedBytes = Math.max(0, this.usedBytes + count);
    return true;
  }

  takeFiles(count: number): boolean {
    if (count > 0 && this.limits.files !== undefined && this.usedFiles + count > this.limits.files) return false;
    this.usedFiles = Math.max(0, this.usedFiles + count);
    return true;
  }

  measureAnew(tree: number): void {
    this.usedBytes = 0;
    this.usedFiles = 0;
    this.measure(tree);
  }

  /** Counts what an existing delta holds already. */
  measure(tree: number): void {
    const stat = new syscalls.Stat();
    const counted = new Set<number>();
    const queue = [syscalls.dup(tree)];
    for (let directory = queue.pop(); directory !== undefined; directory = queue.pop()) {
      const fd = directory;
      readDirectory(fd, (name) => {
        if (isReserved(name) || syscalls.statat(fd, name, stat) < 0) return;
        this.usedFiles += 1;
        if (stat.type === FileType.DIRECTORY) {
          const child = syscalls.openat(fd, name, Open.PATH | Open.DIRECTORY);
          if (child >= 0) queue.push(child);
        } else if (stat.type === FileType.REGULAR && !(stat.nlink > 1 && counted.has(stat.ino))) {
          if (stat.nlink > 1) counted.add(stat.ino);
          this.usedBytes += stat.size;
        }
      });
      syscalls.close(fd);
    }
  }
}
