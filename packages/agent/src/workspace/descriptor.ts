import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

// Node has no openat: a name below an open directory is reached through the link that /proc has for the descriptor,
// which leads to the directory itself and not to where it once was.

/** The same number wherever Node runs. It only holds a place: nothing is read, no device is woken. */
const O_PATH = 0o10000000;
const HOLD = O_PATH | constants.O_NOFOLLOW;
const HOLD_DIRECTORY = HOLD | constants.O_DIRECTORY;

/** What the descriptor is of, to be opened again or given to a call that takes a path. */
export function itself(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}

/** A name in an open directory. Calls that take it must not follow a link at its end. */
export function inside(directory: FileHandle, name: string): string {
  return `${itself(directory)}/${name}`;
}

/** The same for a name that may be no text. */
export function insideBytes(directory: FileHandle, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${itself(directory)}/`), name]);
}

/** Holds whatever is there; of a link, the link. */
export async function hold(path: string): Promise<FileHandle> {
  return await open(path, HOLD);
}

export async function holdDirectory(path: string | Buffer): Promise<FileHandle> {
  return await open(path, HOLD_DIRECTORY);
}
