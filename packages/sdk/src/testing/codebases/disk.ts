import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { directoryEntry, fileEntry, linkEntry } from "../files/entry.ts";
import { joined } from "../files/paths.ts";
import type { Wanted } from "./draft.ts";

/** A directory of this machine, read into memory. Links stay links; sockets, fifos and devices stay out. */
export async function readDirectory(directory: string, signal?: AbortSignal, at = "/"): Promise<Wanted[]> {
  const found: Wanted[] = [];
  for (const name of (await readdir(directory)).sort()) {
    signal?.throwIfAborted();
    const place = join(directory, name);
    const path = joined(at, name);
    const stat = await lstat(place);
    const mode = stat.mode & 0o777;
    if (stat.isSymbolicLink()) found.push({ path, entry: linkEntry(await readlink(place), stat.mtimeMs) });
    if (stat.isFile()) found.push({ path, entry: fileEntry(await readFile(place), mode, stat.mtimeMs) });
    if (!stat.isDirectory()) continue;
    found.push({ path, entry: directoryEntry(mode, stat.mtimeMs) }, ...(await readDirectory(place, signal, path)));
  }
  return found;
}
