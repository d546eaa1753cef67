import { syscalls } from "@agentfense/fuse";
import { turn, type Walk } from "./walks.ts";

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

/** Of some five hundred names. */
const BUFFER_SIZE = 16 * 1024;
const buffer = Buffer.alloc(BUFFER_SIZE);
const view = new DataView(buffer.buffer, buffer.byteOffset, BUFFER_SIZE);

/** Must not read directories itself. True: it has seen enough. */
type EachEntry = (name: string, type: number, inode: number) => unknown;

/** Calls `each` for every entry but . and .. of a directory, until it returns true. Returns 0 or a negated errno. */
export function readDirectory(directory: number, each: EachEntry): number {
  const { fd, isOwn } = openToRead(directory);
  if (fd < 0) return fd;
  try {
    for (;;) {
      const filled = syscalls.getdents64(fd, buffer);
      if (filled <= 0) return filled;
      if (passOn(filled, each).enough) return 0;
    }
  } finally {
    if (isOwn) syscalls.close(fd);
  }
}

/** The same for directories of any size: pauses after every few hundred entries. */
export function* walkDirectory(directory: number, each: EachEntry): Walk<number> {
  let { fd, isOwn } = openToRead(directory);
  if (fd < 0) return fd;
  try {
    for (let batches = 1; ; batches++) {
      const filled = syscalls.getdents64(fd, buffer);
      if (filled <= 0) return filled;
      const { enough, position } = passOn(filled, each);
      if (enough) return 0;
      if (batches === 1) continue; // most directories end here
      if (!isOwn) {
        // Others read the same descriptor meanwhile, or close it.
        const own = reopen(fd);
        if (own < 0) return own;
        [fd, isOwn] = [own, true];
        const code = syscalls.seekDirectory(fd, position);
        if (code < 0) return code;
      }
      yield;
    }
  } finally {
    if (isOwn) syscalls.close(fd);
  }
}

function openToRead(directory: number): { fd: number; isOwn: boolean } {
  if (syscalls.lseek(directory, 0, Seek.SET) === 0) return { fd: directory, isOwn: false };
  // An O_PATH descriptor cannot be read.
  return { fd: reopen(directory), isOwn: true };
}

// Through its magic link, not as ".", which would need the right to search the directory where listing needs only that to read it.
function reopen(directory: number): number {
  return syscalls.open(`/proc/self/fd/${directory}`, Open.RDONLY | Open.DIRECTORY);
}

/** Passes what getdents64 wrote on; `position` is where the next call goes on. */
function passOn(filled: number, each: EachEntry): { enough: boolean; position: bigint } {
  let enough = false;
  let last = 0;
  for (let at = 0; at < filled && !enough; ) {
    // struct linux_dirent64: d_ino u64, d_off i64, d_reclen u16, d_type u8, d_name
    const length = view.getUint16(at + 16, true);
    let end = at + 19;
    while (buffer[end] !== 0) end += 1;
    const name = buffer.toString("latin1", at + 19, end);
    const inode = view.getUint32(at, true) + view.getUint32(at + 4, true) * 0x1_0000_0000;
    turn.entries += 1;
    if (name !== "." && name !== "..") enough = each(name, buffer[at + 18]!, inode) === true;
    last = at;
    at += length;
  }
  return { enough, position: view.getBigInt64(last + 8, true) };
}
