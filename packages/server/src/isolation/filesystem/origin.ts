import { createHash } from "node:crypto";
import { syscalls } from "@agentfense/fuse";
import { ORIGIN_XATTR } from "./xattrs.ts";

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
  syscalls.setxattrFollowing(`/proc/self/fd/${fd}`, ORIGIN_XATTR, value, 0);
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
  return createHash("sha256").update(path, "latin1").digest("hex").slice(0, 16);
}
