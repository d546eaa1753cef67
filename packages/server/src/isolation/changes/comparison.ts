import { createHash } from "node:crypto";
import { Errno, syscalls } from "@agentfense/fuse";
import { closing, onlyRegular } from "../filesystem/descriptors.ts";

const { FileType, Open, Stat } = syscalls;

/** What counts of a mode: setuid, setgid and sticky are never carried over, so they make no difference either. */
export const MODE_BITS = 0o777;

const BLOCK = 64 * 1024;
const BLOCKS_IN_A_ROW = 64;

/** An entry by the descriptor of its directory and its name. */
export interface EntryHandle {
  readonly directory: number;
  readonly name: string;
}

export function statOf(place: EntryHandle): syscalls.Stat | undefined {
  const stat = new Stat();
  return place.directory >= 0 && syscalls.statat(place.directory, place.name, stat) === 0 ? stat : undefined;
}

/** True for an entry that was only copied up: same type, content and mode (a link: same target). Not for directories. */
export async function isUnchanged(now: EntryHandle, old: EntryHandle): Promise<boolean> {
  const [a, b] = [statOf(now), statOf(old)];
  if (a === undefined || b === undefined || a.type !== b.type || a.type === FileType.DIRECTORY) return false;
  if (a.type === FileType.SYMLINK) return readTarget(now) === readTarget(old);
  if (a.type !== FileType.REGULAR) return true;
  if (a.size !== b.size || (a.mode & MODE_BITS) !== (b.mode & MODE_BITS)) return false;
  return sameContent(now, old);
}

/** By the birth of their inodes, which nobody can set. */
export function isBornLater(a: syscalls.Stat, b: syscalls.Stat): boolean {
  return a.btime > b.btime || (a.btime === b.btime && a.btimeNs > b.btimeNs);
}

/** The target of a symlink as bytes; undefined when it is none. */
export function readTarget(place: EntryHandle): string | undefined {
  const bytes = Buffer.alloc(4096);
  const length = syscalls.readlinkat(place.directory, place.name, bytes);
  return length < 0 ? undefined : bytes.toString("latin1", 0, length);
}

/** Byte for byte; false when one cannot be read. */
export async function sameContent(now: EntryHandle, old: EntryHandle): Promise<boolean> {
  const [a, b] = [openRegular(now), openRegular(old)];
  using _open = closing(a, b);
  return await sameBytes(a, b);
}

/** The same for open files; one that could not be opened has none. */
export async function sameBytes(a: number, b: number): Promise<boolean> {
  if (a < 0 || b < 0) return false;
  const [left, right] = [Buffer.alloc(BLOCK), Buffer.alloc(BLOCK)];
  for (let offset = 0, blocks = 1; ; blocks++) {
    const n = syscalls.pread(a, left, BLOCK, offset);
    const m = syscalls.pread(b, right, BLOCK, offset);
    if (n !== m || n < 0 || left.compare(right, 0, n, 0, n) !== 0) return false;
    if (n === 0) return true;
    offset += n;
    if (blocks % BLOCKS_IN_A_ROW === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Of what an open file holds, in hexadecimal; undefined when it cannot be read. */
export async function sha256Of(fd: number, signal?: AbortSignal): Promise<string | undefined> {
  const hash = createHash("sha256");
  const block = Buffer.allocUnsafe(BLOCK);
  for (let offset = 0, blocks = 1; ; blocks++) {
    const length = syscalls.pread(fd, block, BLOCK, offset);
    if (length < 0) return undefined;
    if (length === 0) return hash.digest("hex");
    hash.update(block.subarray(0, length));
    offset += length;
    if (blocks % BLOCKS_IN_A_ROW !== 0) continue;
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
  }
}

/** Opens a regular file for reading; what turns out to be something else by then is refused with ESTALE. */
export function openRegular(place: EntryHandle, stat = new Stat()): number {
  return onlyRegular(syscalls.openat(place.directory, place.name, Open.RDONLY | Open.NONBLOCK), Errno.ESTALE, stat);
}
