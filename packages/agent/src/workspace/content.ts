import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, rename, unlink } from "node:fs/promises";
import { inside, itself } from "./descriptor.ts";
import type { ResolvedPath } from "./resolve.ts";
import { failure } from "./workspace-failure.ts";

const PIECE_BYTES = 256 * 1024;
/** Neither setuid nor anything like it survives a new content. */
const PERMISSION_BITS = 0o777;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** All of a file, of which no more than the limit is ever in memory. */
export async function readContent(resolved: ResolvedPath, path: string, maxBytes: number): Promise<Buffer> {
  const { entry } = resolved;
  if (entry === undefined) throw failure("NOT_FOUND", path);
  if (!entry.stats.isFile()) throw failure("WRONG_KIND", path, "is no file");
  // What is held is a file for certain; its name may be anything by now.
  const file = await open(itself(entry.handle), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const pieces: Buffer[] = [];
    let size = 0;
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(PIECE_BYTES, maxBytes + 1 - size)));
      size += bytesRead;
      if (size > maxBytes) throw failure("TOO_LARGE", path, `is larger than ${maxBytes} bytes`);
      if (bytesRead === 0) return Buffer.concat(pieces, size);
      pieces.push(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}

/** Under another name first, which then takes the place: whoever looks sees the old content or the new one. */
export async function writeContent(resolved: ResolvedPath, path: string, content: Uint8Array): Promise<void> {
  const { directory, entry, name } = resolved;
  if (name === undefined || (entry !== undefined && !entry.stats.isFile())) {
    throw failure("WRONG_KIND", path, "is no file, and is not replaced by one");
  }
  const temporary = inside(directory, `.agentfense-${randomUUID()}.tmp`);
  const file = await open(temporary, NEW_FILE, 0o666);
  try {
    await fill(file, content, entry?.stats.mode);
    await rename(temporary, inside(directory, name));
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  }
}

async function fill(file: FileHandle, content: Uint8Array, mode: number | undefined): Promise<void> {
  try {
    await file.writeFile(content);
    if (mode !== undefined) await file.chmod(mode & PERMISSION_BITS);
  } finally {
    await file.close();
  }
}
