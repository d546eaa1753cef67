import { check, Errno, syscalls } from "@agentfense/fuse";
import { readTarget } from "../changes/comparison.ts";
import { closing } from "../filesystem/descriptors.ts";
import { readDirectory } from "../filesystem/directory-reader.ts";
import { bytesOf, textOf, utf8Of } from "../filesystem/names.ts";
import { openFileBeneath } from "./layout.ts";

const { FileType, Open, Stat } = syscalls;

// Directories of the host as they are: others may change them at any time. Nothing in them is followed, and what is neither
// a file, a directory nor a symbolic link, or has a name that is no text, is left out.

/** One entry of a directory that nobody keeps a manifest of. */
export interface TreeEntry {
  /** "src/a.ts", from the root. */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink";
  readonly mode: number;
  /** The size of a file, else 0. */
  readonly size: number;
  /** Where a symbolic link leads, else "". */
  readonly target: string;
  readonly modifiedAtMs: number;
}

export interface TreeSpec {
  /** The root, which is no symlink. */
  readonly directory: string;
  /** Below it; "" is the root itself. */
  readonly path: string;
  readonly recursive: boolean;
}

/** What is in a directory, or below it, in no order. "absent" and "other": there is none, or something else. */
export async function listTree(
  { directory, path, recursive }: TreeSpec,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly TreeEntry[] | "absent" | "other"> {
  const root = openRoot(directory);
  using _open = closing(root);
  const entries: TreeEntry[] = [];
  const waiting = [path];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    const found = entriesOf(root, at);
    if (typeof found === "number") {
      // What goes away while we look was never there.
      if (at !== path) continue;
      return -found === Errno.ENOENT ? "absent" : "other";
    }
    entries.push(...found);
    if (recursive) for (const entry of found) if (entry.kind === "directory") waiting.push(entry.path);
  }
  return entries;
}

/** A regular file below a directory for reading, with what it is; undefined when there is none. */
export function openTreeFile(
  directory: string,
  path: string,
): { readonly fd: number; readonly entry: TreeEntry } | undefined {
  const root = openRoot(directory);
  using _open = closing(root);
  const fd = openFileBeneath(root, path);
  if (fd < 0) return undefined;
  const stat = new Stat();
  check("look at a file", syscalls.fstat(fd, stat));
  return { fd, entry: entryOf(path, stat, "") };
}

function openRoot(directory: string): number {
  return check("open the directory", syscalls.open(bytesOf(directory), Open.PATH | Open.DIRECTORY | Open.NOFOLLOW));
}

function entriesOf(root: number, path: string): TreeEntry[] | number {
  const directory = syscalls.openBeneath(root, path === "" ? "." : bytesOf(path), Open.RDONLY | Open.DIRECTORY);
  if (directory < 0) return directory;
  using _open = closing(directory);
  const names: string[] = [];
  const code = readDirectory(directory, (name) => names.push(name));
  if (code < 0) return code;
  return names.flatMap((name) => {
    const text = utf8Of(name);
    const stat = new Stat();
    if (text === undefined || syscalls.statat(directory, name, stat) < 0 || !CARRIED.has(stat.type)) return [];
    const target = stat.type === FileType.SYMLINK ? (readTarget({ directory, name }) ?? "") : "";
    return [entryOf(path === "" ? text : `${path}/${text}`, stat, textOf(target).toWellFormed())];
  });
}

const CARRIED: ReadonlySet<number> = new Set([FileType.REGULAR, FileType.DIRECTORY, FileType.SYMLINK]);

function entryOf(path: string, stat: syscalls.Stat, target: string): TreeEntry {
  const kind = stat.type === FileType.DIRECTORY ? "directory" : stat.type === FileType.SYMLINK ? "symlink" : "file";
  return {
    path,
    kind,
    mode: stat.mode & 0o777,
    size: kind === "file" ? stat.size : 0,
    target,
    modifiedAtMs: stat.mtime * 1000 + Math.floor(stat.mtimeNs / 1_000_000),
  };
}
