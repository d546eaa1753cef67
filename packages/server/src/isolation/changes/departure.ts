import { Errno, syscalls } from "@agentfense/fuse";
import type { Delta } from "../filesystem/delta.ts";
import { withOwnRights } from "../filesystem/own-rights.ts";
import { OPAQUE_MARKER, whiteoutFor } from "../filesystem/whiteouts.ts";
import { statOf } from "./comparison.ts";
import { namesIn } from "./walk.ts";

const { AT_REMOVEDIR, FileType, Open } = syscalls;

/** A name that the delta no longer needs to hold, as an entry or as a whiteout. */
export interface Departure {
  readonly name: string;
  /** Goes only if nothing is left in it. */
  readonly isDirectory: boolean;
}

/** Takes names out of a directory of the delta: the codebase shows there again. 0, or the last errno. */
export function leaveDelta(directory: number, departures: readonly Departure[]): number {
  let errno = 0;
  for (const { name, isDirectory } of departures) {
    // First the whiteout, which has no effect while the entry is there; the other way round the name would be gone.
    const code =
      removeName(directory, whiteoutFor(name).name) || removeName(directory, name, isDirectory ? AT_REMOVEDIR : 0);
    if (code < 0 && -code !== Errno.ENOTEMPTY) errno = -code;
  }
  return errno;
}

function removeName(directory: number, name: string, flags = 0): number {
  let code = syscalls.unlinkat(directory, name, flags);
  if (-code === Errno.EACCES) code = withOwnRights(directory, () => syscalls.unlinkat(directory, name, flags));
  return -code === Errno.ENOENT ? 0 : code;
}

/**
 * Says the same as the mark that shuts a directory against the codebase, name by name, so that single names can leave: a
 * whiteout for each name of the codebase that the delta lacks, and the mark on each directory below that would begin to
 * merge. All of that has no effect until the mark is lifted. 0 or a negated errno.
 */
export function dissolveOpaque(delta: Delta, directory: number, lower: number, names: ReadonlySet<string>): number {
  for (const name of namesIn([lower])) {
    const code = names.has(name) ? shut(delta, directory, lower, name) : delta.layWhiteout(directory, name);
    if (code < 0) return code;
  }
  return removeName(directory, OPAQUE_MARKER);
}

function shut(delta: Delta, directory: number, lower: number, name: string): number {
  const sides = [statOf({ directory, name }), statOf({ directory: lower, name })];
  if (sides.some((side) => side?.type !== FileType.DIRECTORY)) return 0;
  const fd = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
  if (fd < 0) return fd;
  const code = delta.markOpaque(fd);
  syscalls.close(fd);
  return code;
}
