import { Errno, syscalls } from "@agentfense/fuse";
import { removeName } from "../filesystem/opaque.ts";
import { whiteoutFor } from "../filesystem/whiteouts.ts";

const { AT_REMOVEDIR } = syscalls;

/** A name that the delta no longer needs to hold, as an entry or as a whiteout. */
export interface Departure {
  readonly name: string;
  /** Goes only if nothing is left in it. */
  readonly isDirectory: boolean;
  /** What it was when it was looked at; undefined for a deletion. */
  readonly entry: syscalls.Stat | undefined;
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
