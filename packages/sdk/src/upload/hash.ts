import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { UploadError } from "../errors.ts";
import type { LocalEntry } from "./walk.ts";

export type LocalFile = Extract<LocalEntry, { kind: "file" }>;

/** A file, and what its content was when it was hashed. */
export interface HashedFile extends LocalFile {
  readonly sha256: string;
}

interface HashOptions {
  readonly onBytes?: (count: number) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Reads this many files at once: enough to keep a disk busy, few enough for any limit on descriptors. */
const AT_ONCE = 8;
/** Small files that take longer on average come from a slow disk, which rather serves several at once. */
const QUICK_MS = 1;
/** A machine that is busy for a moment does not make the disk a slow one. */
const PATIENCE_MS = 200;
/** After so many, everything else gets its turn: signals, the progress bar. */
const FILES_A_TURN = 500;

/** Hashes the files in their order. Those that cannot be read are told apart, for the caller to decide about. */
export async function hashFiles(
  top: string,
  files: readonly LocalFile[],
  { onBytes = () => {}, signal }: HashOptions = {},
): Promise<{ readonly hashed: readonly HashedFile[]; readonly unreadable: readonly string[] }> {
  const results = new Array<HashedFile | "unreadable">(files.length);
  let next = 0;
  let waitedMs = 0;
  const quickly = (entry: LocalFile): HashedFile | undefined => {
    if (waitedMs > PATIENCE_MS + next * QUICK_MS) return undefined;
    const startedAtMs = performance.now();
    const hashed = hashSmall(top, entry);
    waitedMs += performance.now() - startedAtMs;
    if (hashed !== undefined) onBytes(hashed.size);
    return hashed;
  };
  const work = async (): Promise<void> => {
    while (next < files.length) {
      const at = next++;
      results[at] = quickly(files[at]!) ?? (await hashFile(top, files[at]!, onBytes));
      if (at % FILES_A_TURN === 0) await setImmediate();
      signal?.throwIfAborted();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return {
    hashed: results.filter((result) => result !== "unreadable"),
    unreadable: files.filter((_, at) => results[at] === "unreadable").map(({ path }) => path),
  };
}

export function sha256Of(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** undefined for a file that is not small, or about which there is more to say. */
function hashSmall(top: string, entry: LocalFile): HashedFile | undefined {
  try {
    const content = readSmall(top, entry.path, entry.size);
    return content && { ...entry, size: content.length, sha256: sha256Of(content) };
  } catch {
    return undefined;
  }
}

async function hashFile(
  top: string,
  entry: LocalFile,
  onBytes: (count: number) => void,
): Promise<HashedFile | "unreadable"> {
  try {
    await using file = await openContent(top, entry.path);
    const digest = createHash("sha256");
    let size = 0;
    for await (const piece of piecesOf(file, entry.size)) {
      digest.update(piece);
      size += piece.length;
      onBytes(piece.length);
    }
    return { ...entry, size, sha256: digest.digest("hex") };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES" || code === "EPERM") return "unreadable";
    if (code === "ENOENT" || code === "ELOOP" || code === "ENXIO") throw contentChanged(entry.path);
    throw error;
  }
}

const CHUNK_BYTES = 262_144;
const SMALL_BYTES = 65_536;
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** A file of the walk, opened for reading: not through a link, and not when it has become something else. */
export async function openContent(top: string, path: string): Promise<FileHandle> {
  const file = await open(join(top, path), FLAGS);
  const status = await file.stat();
  if (status.isFile()) return file;
  await file.close();
  throw contentChanged(path);
}

/**
 * All of a small file at once, under the same conditions; undefined for a file that is large or has grown. This blocks, and
 * takes a fifth of the time: most of what a small file costs otherwise are four trips to another thread.
 */
export function readSmall(top: string, path: string, size: number): Uint8Array | undefined {
  if (size > SMALL_BYTES) return undefined;
  const file = openSync(join(top, path), FLAGS);
  try {
    if (!fstatSync(file).isFile()) throw contentChanged(path);
    const content = Buffer.allocUnsafe(size + 1);
    const bytesRead = readSync(file, content, 0, content.length, 0);
    return bytesRead > size ? undefined : content.subarray(0, bytesRead);
  } finally {
    closeSync(file);
  }
}

/** It is not what it was when the walk saw it. */
export function contentChanged(path: string): UploadError {
  return new UploadError(`${path} changed while it was being read; try again`, {
    code: "UPLOAD_FAILED",
    retryable: true,
    details: { path },
  });
}

/** The bytes of a file in pieces. The size is what it is expected to have: one byte more is asked for, to notice growth. */
export async function* piecesOf(file: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const wanted = Math.min(CHUNK_BYTES, Math.max(size - at, 0) + 1);
    const piece = Buffer.allocUnsafe(wanted);
    const { bytesRead } = await file.read(piece, 0, wanted, at);
    at += bytesRead;
    if (bytesRead > 0) yield piece.subarray(0, bytesRead);
    // A regular file gives less than was asked for at its end only.
    if (bytesRead < wanted) return;
  }
}
