import { Buffer } from "node:buffer";
import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";

/** No rules of a person are longer. */
const LARGEST_FILE = 1_048_576;

/** A file that is not what was expected; other failures are the system's own errors. */
export class TextFileError extends Error {
  override readonly name = "TextFileError";
}

/** The text of a file that somebody named: a link and a pipe are as good as a file. */
export async function readTextFile(path: string): Promise<string> {
  await using file = await open(path, "r");
  return await readText(file);
}

/** The text of a file that was merely found: it has to be one, and no link is followed to it. */
export async function readFoundTextFile(path: string): Promise<string> {
  requireFile(await lstat(path));
  // Should it be swapped after the look: a link fails to open, and a pipe does not make us wait.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  await using file = await open(path, flags);
  requireFile(await file.stat());
  return await readText(file);
}

function requireFile(status: Stats): void {
  if (status.isSymbolicLink()) throw new TextFileError("is a symbolic link, and those are not followed");
  if (!status.isFile()) throw new TextFileError("is not a file");
}

async function readText(file: FileHandle): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  // A file can grow while it is read, so that its size promises nothing.
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(65_536), 0, 65_536, null);
    if (bytesRead === 0) break;
    length += bytesRead;
    if (length > LARGEST_FILE) throw new TextFileError("is larger than 1 MiB");
    pieces.push(buffer.subarray(0, bytesRead));
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(pieces));
  } catch (error) {
    throw new TextFileError("is not UTF-8 text", { cause: error });
  }
}
