import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";

/** What stands at a path. Never changed in place: a change puts another one there, so that versions may share them. */
export interface Entry {
  readonly kind: "file" | "directory" | "symlink";
  /** Of a link its target, of a directory nothing. */
  readonly content: Uint8Array;
  readonly mode: number;
  readonly modifiedAtMs: number;
}

const MODES = { file: 0o644, directory: 0o755, symlink: 0o777 } as const;

export function entryOf(
  kind: Entry["kind"],
  content: string | Uint8Array = "",
  { mode = MODES[kind], modifiedAtMs = Date.now() }: { readonly mode?: number; readonly modifiedAtMs?: number } = {},
): Entry {
  return { kind, content: typeof content === "string" ? Buffer.from(content) : content, mode, modifiedAtMs };
}

/** As text; "" for no entry at all. */
export function textOf(entry: Entry | undefined): string {
  return entry === undefined ? "" : Buffer.from(entry.content).toString("utf8");
}

/** "" for what is no link. */
export function targetOf(entry: Entry): string {
  return entry.kind === "symlink" ? textOf(entry) : "";
}

/** In everything but the time. */
export function isEqual(one: Entry | undefined, other: Entry | undefined): boolean {
  if (one === other) return true;
  if (one === undefined || other === undefined) return false;
  return one.kind === other.kind && one.mode === other.mode && Buffer.compare(one.content, other.content) === 0;
}

/** SHA-256 in hexadecimal of a file's content; "" for what is none. */
export function sha256Of({ kind, content }: Entry): string {
  return kind === "file" ? createHash("sha256").update(content).digest("hex") : "";
}

/** The entries of a directory of this machine, by path. Links stay links; sockets, fifos and devices stay out. */
export async function readDirectory(directory: string, signal?: AbortSignal): Promise<[path: string, entry: Entry][]> {
  const found: [string, Entry][] = [];
  for (const name of await readdir(directory, { recursive: true })) {
    signal?.throwIfAborted();
    const place = join(directory, name);
    const stat = await lstat(place);
    const facts = { mode: stat.mode & 0o777, modifiedAtMs: Math.floor(stat.mtimeMs) };
    const path = `/${name.replaceAll("\\", "/")}`;
    if (stat.isSymbolicLink()) found.push([path, entryOf("symlink", await readlink(place))]);
    else if (stat.isFile()) found.push([path, entryOf("file", await readFile(place), facts)]);
    else if (stat.isDirectory()) found.push([path, entryOf("directory", "", facts)]);
  }
  return found;
}
