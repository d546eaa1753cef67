import { syscalls } from "@agentfense/fuse";

/** What was opened, if it is a regular file; anything else is closed, and the answer is a negated errno: `otherwise`. */
export function onlyRegular(fd: number, otherwise: number, stat = new syscalls.Stat()): number {
  if (fd < 0) return fd;
  const code = syscalls.fstat(fd, stat);
  if (code === 0 && stat.type === syscalls.FileType.REGULAR) return fd;
  syscalls.close(fd);
  return code < 0 ? code : -otherwise;
}

/** Closes them when it is disposed of; what could not be opened is left out. */
export function closing(...fds: readonly (number | undefined)[]): Disposable {
  return {
    [Symbol.dispose]() {
      for (const fd of fds) if (fd !== undefined && fd >= 0) syscalls.close(fd);
    },
  };
}
