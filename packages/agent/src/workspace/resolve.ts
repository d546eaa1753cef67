import type { Stats } from "node:fs";
import { type FileHandle, mkdir, readlink } from "node:fs/promises";
import { namesIn } from "@agentfense/permission";
import { PathTraversalError } from "../errors.ts";
import { hold, inside } from "./descriptor.ts";
import { shown } from "./path.ts";
import { errnoOf, failure } from "./workspace-failure.ts";

const LINKS_AT_MOST = 40;
/** Names that are looked up for one path; links can make it any number. */
const STEPS_AT_MOST = 5_000;

export interface ResolveOptions {
  /** Whether a link at the end is followed, as links on the way are. */
  readonly followLast: boolean;
  /** Missing directories on the way are made. */
  readonly makeDirectories?: boolean | undefined;
}

/** Where a path leads. What is held stays what it is, whatever is renamed meanwhile. */
export class ResolvedPath implements AsyncDisposable {
  /** The directory that it is in; of the workspace itself, or after a link to ".", the directory that it is. */
  readonly directory: FileHandle;
  /** Absent when it is `directory` itself. */
  readonly name: string | undefined;
  /** Absent when nothing is there. */
  readonly entry: { readonly handle: FileHandle; readonly stats: Stats } | undefined;

  constructor(directory: FileHandle, name: string | undefined, entry: ResolvedPath["entry"]) {
    this.directory = directory;
    this.name = name;
    this.entry = entry;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.entry !== undefined && this.entry.handle !== this.directory) await this.entry.handle.close();
    await this.directory.close();
  }
}

/**
 * Goes to a path one name at a time, each opened in the directory before it, as openat2 does with RESOLVE_BENEATH: a
 * link is followed if it is relative and does not climb above the workspace. Swapping a directory for a link while this
 * goes on changes where it leads inside, never that it stays inside.
 */
export async function resolve(
  openRoot: () => Promise<FileHandle>,
  path: string,
  names: readonly string[],
  options: ResolveOptions,
): Promise<ResolvedPath> {
  let directory = await openRoot();
  try {
    /** The names of `directory`; a link's ".." goes back over them. */
    let trail: string[] = [];
    let ahead = [...names];
    let links = 0;
    for (let steps = 0; ahead.length > 0; steps += 1) {
      if (steps >= STEPS_AT_MOST) throw failure("WRONG_KIND", path, "leads through too many directories");
      const [name, ...rest] = ahead as [string, ...string[]];
      if (name === "..") {
        if (trail.length === 0) throw leadsOutside(path);
        // From the top again: only one directory is held at a time, and it is not asked for its parent.
        const top = await openRoot();
        await directory.close();
        directory = top;
        ahead = [...trail.slice(0, -1), ...rest];
        trail = [];
        continue;
      }
      const isLast = rest.length === 0;
      const handle = await holdIfThere(inside(directory, name));
      if (handle === undefined) {
        if (isLast) return new ResolvedPath(directory, name, undefined);
        if (options.makeDirectories !== true) throw failure("NOT_FOUND", path);
        await makeDirectory(inside(directory, name));
        continue;
      }
      let isKept = false;
      try {
        const stats = await handle.stat();
        if (stats.isSymbolicLink() && (!isLast || options.followLast)) {
          links += 1;
          if (links > LINKS_AT_MOST) throw failure("WRONG_KIND", path, "leads through too many links");
          const target = await targetOf(inside(directory, name));
          if (target?.startsWith("/")) throw leadsOutside(path);
          if (target !== undefined) ahead = [...namesIn(target), ...rest];
          continue;
        }
        if (isLast) {
          isKept = true;
          return new ResolvedPath(directory, name, { handle, stats });
        }
        if (!stats.isDirectory()) throw failure("WRONG_KIND", path, "leads through something that is no directory");
        isKept = true;
      } finally {
        if (!isKept) await handle.close();
      }
      await directory.close();
      directory = handle;
      trail.push(name);
      ahead = rest;
    }
    return new ResolvedPath(directory, undefined, { handle: directory, stats: await directory.stat() });
  } catch (error) {
    await directory.close();
    throw error;
  }
}

async function holdIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await hold(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Undefined when it is no link any more: then it is looked at again. */
async function targetOf(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (errnoOf(error) === "EINVAL" || errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    // Somebody was quicker; the next look tells what it is.
    if (errnoOf(error) !== "EEXIST") throw error;
  }
}

function leadsOutside(path: string): PathTraversalError {
  return new PathTraversalError(`${shown(path)} leads through a link out of the workspace`);
}
