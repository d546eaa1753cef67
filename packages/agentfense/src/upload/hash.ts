import { createHash } from "node:crypto";
import { ContentChanged, openContent, piecesOf } from "./content.ts";
import type { LocalEntry } from "./walk.ts";

export type LocalFile = Extract<LocalEntry, { kind: "file" }>;

/** A file, and what its content was when it was hashed. */
export interface HashedFile extends LocalFile {
  readonly sha256: string;
}

/** Reads this many files at once: enough to keep a disk busy, few enough for any limit on descriptors. */
const AT_ONCE = 8;

/** Hashes the files in their order. Those that cannot be read are told apart, for the caller to decide about. */
export async function hashFiles(
  top: string,
  files: readonly LocalFile[],
  onBytes: (count: number) => void,
): Promise<{ readonly hashed: readonly HashedFile[]; readonly unreadable: readonly string[] }> {
  const results = new Array<HashedFile | "unreadable">(files.length);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < files.length) {
      const at = next++;
      results[at] = await hashFile(top, files[at]!, onBytes);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return {
    hashed: results.filter((result) => result !== "unreadable"),
    unreadable: files.filter((_, at) => results[at] === "unreadable").map(({ path }) => path),
  };
}

async function hashFile(
  top: string,
  entry: LocalFile,
  onBytes: (count: number) => void,
): Promise<HashedFile | "unreadable"> {
  try {
    await using file = await openContent(top, entry.path);
    const hash = createHash("sha256");
    let size = 0;
    for await (const piece of piecesOf(file, entry.size)) {
      hash.update(piece);
      size += piece.length;
      onBytes(piece.length);
    }
    return { ...entry, size, sha256: hash.digest("hex") };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES" || code === "EPERM") return "unreadable";
    if (code === "ENOENT" || code === "ELOOP" || code === "ENXIO") throw new ContentChanged(entry.path);
    throw error;
  }
}
