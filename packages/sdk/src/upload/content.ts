import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { UploadError } from "../errors.ts";

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
