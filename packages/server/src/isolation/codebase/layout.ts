import { check, Errno, syscalls } from "@agentfense/fuse";
import { closing, onlyRegular } from "../filesystem/descriptors.ts";
import { bytesOf } from "../filesystem/names.ts";

const { Open } = syscalls;

// Codebases on disk. All directories that are not content have mode 0700.
//
//   <root>/                      locked by the one server that uses it
//     <codebase id>/
//       tree/                    the newest version: exactly its files, what sandboxes have as their lower layer
//       staging/<upload>/<n>     content on its way in; nothing else knows of it until a journal does
//       kept/<version>/<n>       content that this version replaced; goes when no version is left that had it
//       pinned/<version>/        an old version put together from hard links, while sandboxes use it
//
// The manifest in the metadata store says what should be where; nothing here is found out by walking. A file is written
// once, under staging, and never changed after: what differs is another file, moved to the name by one rename. So tree, kept
// and pinned may share an inode, and whoever has a file open keeps what he opened. No two paths of one tree share one.

export const PARTS = ["tree", "staging", "kept", "pinned"] as const;
export type Part = (typeof PARTS)[number];

/** Which codebase a job works on: the storage directory by descriptor, and the codebase's name in it. */
export interface CodebasePlace {
  readonly root: number;
  readonly codebase: string;
}

const CODEBASE_NAME = /^cb_[0-9a-f]{16,64}$/;

/** Nothing else in the storage directory is ours to touch. */
export function isCodebaseName(name: string): boolean {
  return CODEBASE_NAME.test(name);
}

/** Opens a directory of a codebase: "tree", "kept/7" … Throws when it is not there. */
export function openPart(place: CodebasePlace, part: string): number {
  return check(`open ${part}`, openPartOr(place, part));
}

/** The same, with a negated errno for an answer. */
export function openPartOr({ root, codebase }: CodebasePlace, part: string): number {
  return syscalls.openBeneath(root, `${codebase}/${part}`, Open.RDONLY | Open.DIRECTORY);
}

/** Makes it first, if it is missing; its parent must be there. */
export function openOrMakePart(place: CodebasePlace, part: Part, name: string): number {
  const parent = openPart(place, part);
  using _open = closing(parent);
  syscalls.mkdirat(parent, name, 0o700);
  return check(`open ${part}/${name}`, syscalls.openat(parent, name, Open.RDONLY | Open.DIRECTORY));
}

/** Opens a regular file beneath a directory, crossing no link. A descriptor, or a negated errno. */
export function openFileBeneath(directory: number, path: string): number {
  const fd = syscalls.openBeneath(directory, bytesOf(path), Open.RDONLY | Open.NONBLOCK);
  return onlyRegular(fd, Errno.EISDIR); // for everything that is not a regular file
}

const IS_ROOT = process.geteuid?.() === 0;

/**
 * The mode that an entry has on disk. An ordinary user must be able to read and change what it keeps, whatever the
 * manifest says; root can anyway.
 */
export function diskMode(kind: "file" | "directory", mode: number): number {
  if (IS_ROOT) return mode & 0o777;
  return (mode & 0o777) | (kind === "file" ? 0o400 : 0o700);
}

/** The directory of a path and the last name in it. */
export function splitPath(path: string): readonly [directory: string, name: string] {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? ["", path] : [path.slice(0, slash), path.slice(slash + 1)];
}
