import { syscalls } from "@agentfense/fuse";

// An agent can take the mode bits of a directory in its delta away, and with them the way in for a server that is not
// root. The server owns the directory and gives itself the bits back for as long as it needs them.

const OWNER_BITS = 0o700;

/** Lifts the bits that keep the owner out until it is disposed of. Does nothing when none do. */
export function ownRights(directory: number): Disposable {
  const stat = new syscalls.Stat();
  const inTheWay =
    process.geteuid?.() !== 0 && syscalls.fstat(directory, stat) === 0 && (stat.mode & OWNER_BITS) !== OWNER_BITS;
  if (inTheWay) syscalls.chmodHeld(directory, OWNER_BITS);
  return {
    [Symbol.dispose]() {
      if (inTheWay) syscalls.chmodHeld(directory, stat.mode & 0o1777);
    },
  };
}

export function withOwnRights<T>(directory: number, run: () => T): T {
  using _rights = ownRights(directory);
  return run();
}

/** Puts the times of a directory back when it is disposed of: to the sandbox nothing happens there meanwhile. */
export function keepTimes(directory: number): Disposable {
  const before = new syscalls.Stat();
  const isKnown = syscalls.fstat(directory, before) === 0;
  return {
    [Symbol.dispose]() {
      if (isKnown) syscalls.utimensat(directory, "", before.atime, before.atimeNs, before.mtime, before.mtimeNs);
    },
  };
}
