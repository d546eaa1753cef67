import { syscalls } from "@agentfense/fuse";
import { readDirectory } from "../filesystem/directory-reader.ts";
import { removeTree } from "../filesystem/remove-tree.ts";
import { type CodebasePlace, isCodebaseName, openPartOr, PARTS, type Part } from "./layout.ts";

export interface RemoveInput extends CodebasePlace {
  /** "staging/…", "pinned/…", "kept/…", or "" for the codebase altogether. */
  readonly part: string;
}

/** Absent is fine. */
export async function removeDirectory({ root, codebase, part }: RemoveInput): Promise<void> {
  // The directories on the way are the server's own and hold no links; below them removeTree follows none.
  await removeTree(`/proc/self/fd/${root}/${codebase}${part === "" ? "" : `/${part}`}`);
}

export interface ReleaseInput extends CodebasePlace {
  readonly versions: readonly number[];
}

/** Removes what these versions replaced; absent is fine. */
export async function releaseKept({ versions, ...place }: ReleaseInput): Promise<void> {
  for (const version of versions) await removeDirectory({ ...place, part: `kept/${version}` });
}

/** A codebase that the metadata knows, and the oldest version it still has; 0 for none. */
export interface KnownCodebase {
  readonly id: string;
  readonly oldest: number;
}

export interface CleanInput {
  readonly root: number;
  readonly known: readonly KnownCodebase[];
  /** Those whose staging a journal still needs. */
  readonly unfinished: readonly string[];
}

/**
 * After a start: uploads that never ended, versions put together for sandboxes that are gone, what dropped versions kept,
 * codebases nobody knows.
 */
export async function cleanCodebases(input: CleanInput): Promise<{ readonly missing: readonly string[] }> {
  const { root } = input;
  const wanted = new Map(input.known.map(({ id, oldest }) => [id, oldest]));
  const unfinished = new Set(input.unfinished);
  const found: string[] = [];
  readDirectory(root, (name) => {
    if (isCodebaseName(name)) found.push(name);
  });
  for (const codebase of found) {
    const oldest = wanted.get(codebase);
    wanted.delete(codebase);
    const place = { root, codebase };
    if (oldest === undefined) await removeDirectory({ ...place, part: "" });
    else {
      if (!unfinished.has(codebase)) await emptyPart(place, "staging");
      await emptyPart(place, "pinned");
      // No version is left that had what the oldest one replaced.
      await emptyPart(place, "kept", (name) => isVersion(name) && Number(name) <= oldest);
    }
  }
  return { missing: [...wanted.keys()] };
}

async function emptyPart(place: CodebasePlace, part: Part, goes = (_name: string) => true): Promise<void> {
  const directory = openPartOr(place, part);
  if (directory < 0) return;
  const names: string[] = [];
  readDirectory(directory, (name) => {
    if (goes(name)) names.push(name);
  });
  syscalls.close(directory);
  for (const name of names) await removeDirectory({ ...place, part: `${part}/${name}` });
}

function isVersion(name: string): boolean {
  return /^[1-9][0-9]*$/.test(name);
}

/** Makes the directories of a codebase. */
export function makeDirectories({ root, codebase }: CodebasePlace): number {
  const made = syscalls.mkdirat(root, codebase, 0o700);
  if (made < 0) return made;
  const directory = syscalls.openat(root, codebase, syscalls.Open.RDONLY | syscalls.Open.DIRECTORY);
  if (directory < 0) return directory;
  let code = 0;
  for (const part of PARTS) if (code === 0) code = syscalls.mkdirat(directory, part, 0o700);
  if (code === 0) code = syscalls.fsync(directory);
  syscalls.close(directory);
  return code === 0 ? syscalls.fsync(root) : code;
}
