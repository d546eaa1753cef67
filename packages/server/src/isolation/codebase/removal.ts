import { syscalls } from "@agentfense/fuse";
import { readDirectory } from "../filesystem/directory-reader.ts";
import { removeTree } from "../filesystem/remove-tree.ts";
import { type CodebasePlace, isCodebaseName, openPartOr, PARTS } from "./layout.ts";

export interface RemoveInput extends CodebasePlace {
  /** "staging/…", "pinned/…", or "" for the codebase altogether. */
  readonly part: string;
}

/** Absent is fine. */
export async function removeDirectory({ root, codebase, part }: RemoveInput): Promise<void> {
  // The directories on the way are the server's own and hold no links; below them removeTree follows none.
  await removeTree(`/proc/self/fd/${root}/${codebase}${part === "" ? "" : `/${part}`}`);
}

export interface CleanInput {
  readonly root: number;
  readonly known: readonly string[];
  /** Those whose staging a journal still needs. */
  readonly unfinished: readonly string[];
}

/** After a start: uploads that never ended, versions put together for sandboxes that are gone, codebases nobody knows. */
export async function cleanCodebases(input: CleanInput): Promise<{ readonly missing: readonly string[] }> {
  const { root } = input;
  const wanted = new Set(input.known);
  const unfinished = new Set(input.unfinished);
  const found: string[] = [];
  readDirectory(root, (name) => {
    if (isCodebaseName(name)) found.push(name);
  });
  for (const codebase of found) {
    const isKnown = wanted.delete(codebase);
    if (!isKnown) await removeDirectory({ root, codebase, part: "" });
    if (isKnown && !unfinished.has(codebase)) await emptyPart({ root, codebase }, "staging");
    if (isKnown) await emptyPart({ root, codebase }, "pinned");
  }
  return { missing: [...wanted] };
}

async function emptyPart(place: CodebasePlace, part: string): Promise<void> {
  const directory = openPartOr(place, part);
  if (directory < 0) return;
  const names: string[] = [];
  readDirectory(directory, (name) => names.push(name));
  syscalls.close(directory);
  for (const name of names) await removeDirectory({ ...place, part: `${part}/${name}` });
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
