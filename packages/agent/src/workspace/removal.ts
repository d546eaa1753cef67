import { randomUUID } from "node:crypto";
import { chmod, type FileHandle, opendir, rename, rmdir, unlink } from "node:fs/promises";
import { holdDirectory, insideBytes, itself } from "./descriptor.ts";
import { errnoOf } from "./workspace-failure.ts";

/** Each level holds a descriptor; what is deeper is moved up. */
const LEVELS_AT_MOST = 32;
/** Names in memory. */
const BATCH = 64;
/** How often something that somebody changes meanwhile is tried again. */
const ATTEMPTS = 100;
const OWNER_BITS = 0o700;

/** Removes a name with all that is below it. Links are removed and never followed. */
export async function removeTree(parent: FileHandle, name: string): Promise<void> {
  await remove(parent, Buffer.from(name), undefined, 1);
}

/** Removes all that is in a directory. */
export async function emptyDirectory(directory: FileHandle): Promise<void> {
  await empty(directory, directory, 1);
}

async function remove(parent: FileHandle, name: Buffer, top: FileHandle | undefined, level: number): Promise<void> {
  const place = insideBytes(parent, name);
  for (let attempt = 1; ; attempt += 1) {
    if (await unlinked(place)) return;
    try {
      if (top !== undefined && level > LEVELS_AT_MOST) {
        return await rename(place, insideBytes(top, Buffer.from(`.agentfense-${randomUUID()}.tmp`)));
      }
      const directory = await holdDirectory(place);
      try {
        await empty(directory, top ?? directory, level + 1);
      } finally {
        await directory.close();
      }
      return await rmdir(place);
    } catch (error) {
      if (attempt >= ATTEMPTS || !MAY_PASS.has(errnoOf(error) ?? "")) throw error;
    }
  }
}

/** False of a directory. Links are not followed; what is gone is gone. */
async function unlinked(place: Buffer): Promise<boolean> {
  try {
    await unlink(place);
  } catch (error) {
    if (errnoOf(error) === "EISDIR") return false;
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  return true;
}

/** Somebody puts something there, or takes it away, while we look. */
const MAY_PASS: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ENOTEMPTY", "ELOOP"]);

async function empty(directory: FileHandle, top: FileHandle, level: number): Promise<void> {
  await openUp(directory);
  for (;;) {
    const names = await someNames(directory);
    if (names.length === 0) return;
    const areGone = await Promise.all(names.map((name) => unlinked(insideBytes(directory, name))));
    const directories = names.filter((_, index) => !areGone[index]);
    for (const name of directories) await remove(directory, name, top, level);
  }
}

async function someNames(directory: FileHandle): Promise<Buffer[]> {
  const names: Buffer[] = [];
  // The types know only of names that are text.
  for await (const { name } of await opendir(itself(directory), { encoding: "buffer" as BufferEncoding })) {
    names.push(name as unknown as Buffer);
    if (names.length >= BATCH) break;
  }
  return names;
}

/** A directory of our own that was made read-only is made writable: it is about to go. */
async function openUp(directory: FileHandle): Promise<void> {
  const { mode } = await directory.stat();
  if ((mode & OWNER_BITS) !== OWNER_BITS) await chmod(itself(directory), OWNER_BITS);
}
