import { hash } from "node:crypto";
import { Errno, syscalls } from "@agentfense/fuse";

// Only user.* attributes exist for the sandbox. Those of other name spaces belong to the host: they are neither shown nor
// taken, and what asks for them (security.capability before a write, security.selinux from ls) hears that there is none. So
// do the delta's own.

const USER_PREFIX = "user.";
/** The delta's own notes on its files. */
const OWN_PREFIX = "user.agentfense.";
const ORIGIN_XATTR = `${OWN_PREFIX}origin`;
/** The largest value and list Linux allows, and room for one. */
export const XATTR_MAX = 65536;
export const scratch = Buffer.alloc(XATTR_MAX);

export function isUserXattr(name: string): boolean {
  return name.startsWith(USER_PREFIX) && name.length > USER_PREFIX.length && !name.startsWith(OWN_PREFIX);
}

/** Copies user.* attributes between two open files or directories; a target that cannot keep them goes without. */
export function copyUserXattrs(from: number, to: number): void {
  const names = userXattrNames(from);
  if (names.length === 0) return;
  const source = `/proc/self/fd/${from}`;
  const target = `/proc/self/fd/${to}`;
  for (const name of names) {
    const length = syscalls.getxattrFollowing(source, name, scratch, XATTR_MAX);
    if (length >= 0) syscalls.setxattrFollowing(target, name, scratch.subarray(0, length), 0);
  }
}

function userXattrNames(fd: number): string[] {
  let length = syscalls.flistxattr(fd, scratch, XATTR_MAX);
  // Of a directory that is held by O_PATH.
  if (-length === Errno.EBADF) length = syscalls.listxattrFollowing(`/proc/self/fd/${fd}`, scratch, XATTR_MAX);
  return length <= 0 ? [] : scratch.toString("latin1", 0, length).split("\0").filter(isUserXattr);
}

// A file of the delta that is a copy of the codebase's carries what it was when it was copied, in an attribute that the
// sandbox neither sees nor can set:
//
//   <mtime seconds>:<nanoseconds>:<size>:<mode, octal>:<SHA-256 of its path without a leading slash, 16 digits>
//
// A write moves the time, so a copy whose time and size are still those has the content it was copied with (unless both
// happened within a tick of the kernel's clock: what was brand new when it was copied is not believed). Should the
// codebase have another content by then, that is newer, and the copy must not take its place. A name that moved is
// another path, and what it carries counts for nothing there.

/**
 * untouched  content and mode are those of the copy
 * unwritten  only the mode is another
 * written    it is no copy, or has content of its own
 */
export type CopyState = "untouched" | "unwritten" | "written";

/** Marks an open file of the delta as a copy; a file system that cannot keep that goes without. */
export function markCopy(fd: number, path: string, stat: syscalls.Stat, mode: number): void {
  const value = Buffer.from(`${contentMark(stat)}:${(mode & 0o777).toString(8)}:${digest(path)}`, "latin1");
  syscalls.fsetxattr(fd, ORIGIN_XATTR, value, 0);
}

const value = Buffer.alloc(256);

export function copyState(directory: number, name: string, path: string, now: syscalls.Stat): CopyState {
  if (now.type !== syscalls.FileType.REGULAR) return "written";
  const length = syscalls.getxattr(`/proc/self/fd/${directory}/${name}`, ORIGIN_XATTR, value, value.length);
  const [seconds, nanoseconds, size, mode, where] = length <= 0 ? [] : value.toString("latin1", 0, length).split(":");
  if (`${seconds}:${nanoseconds}:${size}` !== contentMark(now) || where !== digest(path)) return "written";
  if (ageAtBirthMs(now) < TICK_MS) return "written";
  return mode === (now.mode & 0o777).toString(8) ? "untouched" : "unwritten";
}

/** True for what was copied from the layers below to this path, whatever became of it. */
export function wasCopied(directory: number, name: string, path: string): boolean {
  const length = syscalls.getxattr(`/proc/self/fd/${directory}/${name}`, ORIGIN_XATTR, value, value.length);
  return length > 0 && value.toString("latin1", 0, length).split(":").at(-1) === digest(path);
}

/** The slowest clock Linux is built with ticks every 10 ms. */
const TICK_MS = 20;

/** How old the content was when it was copied. */
function ageAtBirthMs({ btime, btimeNs, ctime, ctimeNs, mtime, mtimeNs }: syscalls.Stat): number {
  const [seconds, nanoseconds] = btime === 0 ? [ctime, ctimeNs] : [btime, btimeNs];
  return (seconds - mtime) * 1000 + (nanoseconds - mtimeNs) / 1_000_000;
}

function contentMark({ mtime, mtimeNs, size }: syscalls.Stat): string {
  return `${mtime}:${mtimeNs}:${size}`;
}

function digest(path: string): string {
  return hash("sha256", Buffer.from(path, "latin1"), "hex").slice(0, 16);
}
