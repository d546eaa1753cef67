import { Errno, syscalls } from "@agentfense/fuse";

const { Seek } = syscalls;

/** Copied before others get their turn. */
const SLICE = 8 << 20;
const BUFFER_SIZE = 1 << 20;

/** Copies a file's data, holes as holes. 0 or a negated errno; throws when the signal aborts. */
export async function copyData(from: number, to: number, size: number, signal?: AbortSignal): Promise<number> {
  if (syscalls.cloneFile(from, to) === 0) return 0;
  const buffer = Buffer.allocUnsafe(Math.min(size, BUFFER_SIZE));
  let sinceTurn = 0;
  for (let offset = 0; offset < size; ) {
    const stretch = nextData(from, offset, size);
    if (stretch === undefined) break;
    offset = stretch.start;
    while (offset < stretch.end) {
      const copied = copyPiece(from, to, offset, Math.min(stretch.end - offset, BUFFER_SIZE), buffer);
      if (copied < 0) return copied;
      if (copied === 0) return -Errno.ESTALE; // shorter by now
      offset += copied;
      sinceTurn += copied;
      if (sinceTurn < SLICE) continue;
      sinceTurn = 0;
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    }
  }
  return syscalls.ftruncate(to, size);
}

/** The next stretch that holds data; undefined when only a hole is left. */
function nextData(fd: number, offset: number, size: number): { start: number; end: number } | undefined {
  const start = syscalls.lseek(fd, offset, Seek.DATA);
  if (start === -Errno.ENXIO) return undefined;
  if (start < 0) return { start: offset, end: size }; // a file system without holes
  const end = syscalls.lseek(fd, start, Seek.HOLE);
  return start >= size ? undefined : { start, end: end < 0 ? size : Math.min(end, size) };
}

function copyPiece(from: number, to: number, offset: number, length: number, buffer: Buffer): number {
  const copied = syscalls.copyFileRange(from, offset, to, offset, length);
  if (copied > 0) return copied;
  // Between file systems, or on one that cannot: through memory.
  const read = syscalls.pread(from, buffer, Math.min(length, buffer.length), offset);
  return read <= 0 ? read : syscalls.pwrite(to, buffer, read, offset);
}
