import { syscalls } from "@agentfense/fuse";

const { Open, Seek } = syscalls;

/** d_type values of getdents64; they are the type bits of a mode, shifted. */
export const DirentType = {
  UNKNOWN: 0,
  FIFO: 1,
  CHARACTER: 2,
  DIRECTORY: 4,
  BLOCK: 6,
  REGULAR: 8,
  SYMLINK: 10,
  SOCKET: 12,
} as const;

const BUFFER_SIZE = 64 * 1024;
const buffer = Buffer.alloc(BUFFER_SIZE);
const view = new DataView(buffer.buffer, buffer.byteOffset, BUFFER_SIZE);

type EachEntry = (name: string, type: number, inode: number) => void;

/** Calls `each` for every entry but . and .. of a directory. Returns 0 or a negated errno. */
export function readDirectory(directory: number, each: EachEntry): number {
  if (syscalls.lseek(directory, 0, Seek.SET) === 0) return readEntries(directory, each);
  // An O_PATH descriptor cannot be read. Reopened through its magic link, not as ".", which would need the right to search
  // the directory where listing needs only that to read it.
  const fd = syscalls.open(`/proc/self/fd/${directory}`, Open.RDONLY | Open.DIRECTORY);
  if (fd < 0) return fd;
  try {
    return readEntries(fd, each);
  } finally {
    syscalls.close(fd);
  }
}

function readEntries(fd: number, each: EachEntry): number {
  for (;;) {
    const filled = syscalls.getdents64(fd, buffer);
    if (filled <= 0) return filled;
    for (let at = 0; at < filled; ) {
      // struct linux_dirent64: d_ino u64, d_off i64, d_reclen u16, d_type u8, d_name
      const length = view.getUint16(at + 16, true);
      let end = at + 19;
      while (buffer[end] !== 0) end += 1;
      const name = buffer.toString("latin1", at + 19, end);
      const inode = view.getUint32(at, true) + view.getUint32(at + 4, true) * 0x1_0000_0000;
      if (name !== "." && name !== "..") each(name, buffer[at + 18]!, inode);
      at += length;
    }
  }
}
