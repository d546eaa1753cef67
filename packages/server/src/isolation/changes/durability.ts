import { check, syscalls } from "@agentfense/fuse";

// What a journal speaks of must be on the disk before the journal is, and what it asked for before it goes. A few files or
// directories are written out one by one; many are cheaper to write out as the whole file system, once.
const FEW = 32;

/** Brings the content of files to the disk as they are finished. */
export class ContentSettler {
  #count = 0;

  /** The file is complete, and still open. */
  finished(fd: number): void {
    this.#count += 1;
    if (this.#count <= FEW) check("fdatasync", syscalls.fdatasync(fd));
  }

  /** All are; any descriptor of the file system will do. */
  settle(fd: number): void {
    if (this.#count > FEW) settleEverything(fd);
  }
}

/** Waits until what was done to the names in these open directories is on the disk. */
export function settleDirectories(fds: readonly number[]): void {
  const [any] = fds;
  if (any === undefined) return;
  if (fds.length > FEW) settleEverything(any);
  else for (const fd of fds) check("fsync", syscalls.fsync(fd));
}

/** Waits for the whole file system that the descriptor is of. */
export function settleEverything(fd: number): void {
  check("syncfs", syscalls.syncfs(fd));
}

/** Waits until these are on the disk, and tells of which that failed, with its errno. They may be of several file systems. */
export function keep(fds: readonly number[]): ReadonlyMap<number, number> {
  const failed = new Map<number, number>();
  for (const together of byFileSystem(fds)) {
    // Files of others can make the whole fail.
    if (together.length > FEW && syscalls.syncfs(together[0]!) === 0) continue;
    for (const fd of together) {
      const code = syscalls.fsync(fd);
      if (code < 0) failed.set(fd, -code);
    }
  }
  return failed;
}

function byFileSystem(fds: readonly number[]): Iterable<readonly number[]> {
  const stat = new syscalls.Stat();
  return Map.groupBy(fds, (fd) => (syscalls.fstat(fd, stat) < 0 ? "" : `${stat.devMajor}:${stat.devMinor}`)).values();
}
