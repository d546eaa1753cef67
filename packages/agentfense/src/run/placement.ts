import { lstat, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { UsageError } from "../command-failure.ts";
import { printable } from "../terminal.ts";

/** The three places of a mount as real paths, no one inside another. */
export interface Placement {
  readonly directory: string;
  readonly mountPoint: string;
  readonly delta: string;
}

/** Where a path leads even when what is mounted there is dead and cannot be asked. */
export async function locateMountPoint(path: string): Promise<string> {
  const absolute = resolve(path);
  return await realpath(absolute).catch(async () => {
    const parent = await realpath(dirname(absolute)).catch(() => dirname(absolute));
    return join(parent, basename(absolute));
  });
}

/** The delta, which need not exist yet: its nearest existing ancestor decides where it really is. */
export async function resolveDelta(path: string): Promise<string> {
  const absolute = resolve(path);
  const missing: string[] = [];
  for (let at = absolute; ; at = dirname(at)) {
    const entry = await lstat(at).catch(unlessAbsent);
    if (entry !== undefined) {
      if (!(await stat(at).catch(unlessAbsent))?.isDirectory()) {
        throw new UsageError(`the delta cannot be at ${printable(absolute)}: ${printable(at)} is not a directory`);
      }
      return join(await realpath(at), ...missing);
    }
    missing.unshift(basename(at));
  }
}

/**
 * Refuses a mount that would look into itself. A mount point inside the codebase or the delta makes the file system serve
 * its own mount; a codebase or delta inside the mount point disappears under it; a delta inside the codebase shows the
 * agent its own changes as files.
 */
export function requireApart({ directory, mountPoint, delta }: Placement): void {
  requirePlacesApart([
    ["DIR", directory],
    ["MOUNTPOINT", mountPoint],
    ["the delta", delta],
  ]);
}

/** The same for a mount whose place is not the user's to choose. */
export function requireDeltaApart(directory: string, delta: string): void {
  requirePlacesApart([
    ["DIR", directory],
    ["the delta", delta],
  ]);
}

function requirePlacesApart(places: readonly (readonly [name: string, path: string])[]): void {
  for (const [name, path] of places) {
    for (const [otherName, otherPath] of places) {
      if (name === otherName) continue;
      if (path === otherPath)
        throw new UsageError(`${name} and ${otherName} are the same directory: ${printable(path)}`);
      if (contains(otherPath, path)) {
        throw new UsageError(`${name} (${printable(path)}) must not be inside ${otherName} (${printable(otherPath)})`);
      }
    }
  }
}

function contains(outer: string, inner: string): boolean {
  return outer === "/" || inner.startsWith(`${outer}/`);
}

function unlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw new UsageError(`the delta cannot be used: ${error.message}`);
}
