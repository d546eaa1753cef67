import type { Stats } from "node:fs";
import { type FileHandle, lstat, opendir } from "node:fs/promises";
import { holdDirectory, inside, itself } from "./descriptor.ts";
import { isUsablePath } from "./path.ts";
import type { WorkspaceEntry } from "./workspace.ts";
import { errnoOf, failure } from "./workspace-failure.ts";

/** Each level holds a descriptor. */
const LEVELS_AT_MOST = 64;
/** Asked for at a time. */
const BATCH = 32;

/** What something is; undefined when it is none of what a workspace knows, such as a socket. */
export function workspaceEntry(path: string, stats: Stats): WorkspaceEntry | undefined {
  const kind = stats.isFile()
    ? "file"
    : stats.isDirectory()
      ? "directory"
      : stats.isSymbolicLink()
        ? "symlink"
        : undefined;
  return kind && { path, kind, size: kind === "file" ? stats.size : 0, modifiedAt: stats.mtime };
}

/** What is in a directory, following no link. What cannot be named, or goes away meanwhile, is left out. */
export async function listEntries(
  directory: FileHandle,
  path: string,
  options: { readonly recursive: boolean; readonly maxEntries: number },
): Promise<WorkspaceEntry[]> {
  const found: WorkspaceEntry[] = [];
  const add = async (here: FileHandle, prefix: string, level: number): Promise<void> => {
    if (level > LEVELS_AT_MOST) throw failure("TOO_LARGE", path, `has more than ${LEVELS_AT_MOST} levels`);
    const room = options.maxEntries - found.length;
    const names = await namesInside(here, room + 1);
    if (names.length > room) {
      throw failure("TOO_LARGE", path, `has more than ${options.maxEntries} entries; list a part of it`);
    }
    const entries = await entriesOf(here, prefix, names);
    found.push(...entries);
    if (!options.recursive) return;
    for (const entry of entries.filter(({ kind }) => kind === "directory")) {
      const below = await holdIfDirectory(inside(here, entry.path.slice(prefix.length)));
      if (below === undefined) continue;
      try {
        await add(below, `${entry.path}/`, level + 1);
      } finally {
        await below.close();
      }
    }
  };
  await add(directory, path === "" ? "" : `${path}/`, 1);
  return found.sort((one, other) => (one.path < other.path ? -1 : 1));
}

async function namesInside(directory: FileHandle, atMost: number): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of await opendir(itself(directory))) {
    names.push(name);
    if (names.length >= atMost) break;
  }
  return names;
}

async function entriesOf(directory: FileHandle, prefix: string, names: readonly string[]): Promise<WorkspaceEntry[]> {
  const entries: WorkspaceEntry[] = [];
  for (let at = 0; at < names.length; at += BATCH) {
    const batch = names.slice(at, at + BATCH).map(async (name) => {
      const path = `${prefix}${name}`;
      const stats = isUsablePath(path) ? await lstat(inside(directory, name)).catch(ignoreGone) : undefined;
      return stats && workspaceEntry(path, stats);
    });
    for (const entry of await Promise.all(batch)) if (entry !== undefined) entries.push(entry);
  }
  return entries;
}

async function holdIfDirectory(path: string): Promise<FileHandle | undefined> {
  try {
    return await holdDirectory(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

function ignoreGone(error: unknown): undefined {
  if (errnoOf(error) !== "ENOENT") throw error;
}
