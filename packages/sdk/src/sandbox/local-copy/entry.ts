import { createHash } from "node:crypto";
import { type BigIntStats, constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";

/** What stands at a path, as far as it takes to tell whether it is still the same. */
export type Entry =
  | { readonly kind: "file"; readonly sha256: string }
  | { readonly kind: "directory" }
  | { readonly kind: "symlink"; readonly target: string };

/** The same of this machine, where there are also sockets and devices. */
export type LocalEntry = (Entry | { readonly kind: "other" }) & {
  /** Changes with anything that is done to the entry. */
  readonly stamp: string;
};

/** What a path of the codebase is after the changes were applied there. */
export type NewEntry = Entry & { readonly mode: number };

/** Where the new content comes from. */
export interface CopySource {
  /** What is at a path relative to the codebase; undefined where there is nothing. */
  entry(path: string): Promise<NewEntry | undefined>;
  content(path: string): AsyncIterable<Uint8Array>;
}

export function isSame(one: Entry | { readonly kind: "other" }, other: Entry): boolean {
  switch (one.kind) {
    case "file":
      return other.kind === "file" && one.sha256 === other.sha256;
    case "symlink":
      return other.kind === "symlink" && one.target === other.target;
    case "directory":
      return other.kind === "directory";
    case "other":
      return false;
  }
}

/** What is at a path of this machine, its links not followed. The directory it is in is known to be a real one. */
export async function readEntry(path: string): Promise<LocalEntry | undefined> {
  const status = await statusOf(path);
  if (status === undefined) return undefined;
  const stamp = stampOf(status);
  if (status.isDirectory()) return { kind: "directory", stamp };
  if (status.isSymbolicLink()) return { kind: "symlink", target: await readlink(path), stamp };
  if (status.isFile()) return { kind: "file", sha256: await hashFile(path), stamp };
  return { kind: "other", stamp };
}

/** "" where nothing is. */
export async function readStamp(path: string): Promise<string> {
  const status = await statusOf(path);
  return status === undefined ? "" : stampOf(status);
}

export async function statusOf(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

function stampOf({ dev, ino, size, mtimeNs, ctimeNs, mode }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs, mode].join(":");
}

async function hashFile(path: string): Promise<string> {
  // It may have become a link or a pipe since it was looked at.
  const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const digest = createHash("sha256");
    for await (const piece of file.createReadStream({ autoClose: false })) digest.update(piece as Uint8Array);
    return digest.digest("hex");
  } finally {
    await file.close();
  }
}
