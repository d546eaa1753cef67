import { check, Errno, SystemError, syscalls } from "@agentfense/fuse";
import { ContentSettler } from "../changes/durability.ts";
import { closing } from "../filesystem/descriptors.ts";
import { bytesOf } from "../filesystem/names.ts";
import { removeTree } from "../filesystem/remove-tree.ts";
import { copyData } from "../filesystem/transfer.ts";
import { type CodebasePlace, diskMode, openFileBeneath, openOrMakePart, openPart, splitPath } from "./layout.ts";

const { Open, Stat } = syscalls;

/** Content that a codebase has: a file of its newest version, or "<version>/<n>" among what was kept. */
export type ContentSource =
  | { readonly in: "tree"; readonly path: string }
  | { readonly in: "kept"; readonly path: string };

export interface ContentCopy {
  readonly from: ContentSource;
  /** The name it gets in the upload's staging directory. */
  readonly staged: string;
  /** The same file under another name will do: nobody else's path has it, and its mode is right. */
  readonly share: boolean;
}

export interface CopyInput extends CodebasePlace {
  readonly upload: string;
  readonly copies: readonly ContentCopy[];
}

/** Stages content that the codebase has already. */
export async function copyContents(input: CopyInput, { signal }: { readonly signal: AbortSignal }): Promise<void> {
  using sources = new Sources(input);
  const staging = openOrMakePart(input, "staging", input.upload);
  const settler = new ContentSettler();
  using _open = closing(staging);
  for (const { from, staged, share } of input.copies) {
    if (share && sources.link(from, staging, staged)) continue;
    await copyInto(sources.open(from), staging, staged, signal, (copy) => settler.finished(copy));
  }
  settler.settle(staging);
}

/** Copies an open file, which is closed, to a name in a directory; `dress` is given the copy before it is closed too. */
async function copyInto(
  from: number,
  directory: number,
  name: string,
  signal: AbortSignal,
  dress: (copy: number) => void,
): Promise<void> {
  let to = -1;
  try {
    const stat = new Stat();
    check("stat", syscalls.fstat(from, stat));
    to = check("create", syscalls.openat(directory, name, Open.RDWR | Open.CREAT | Open.EXCL, 0o600));
    check("copy", await copyData(from, to, stat.size, signal));
    check("utimes", syscalls.utimensat(to, "", stat.mtime, stat.mtimeNs, stat.mtime, stat.mtimeNs));
    dress(to);
  } finally {
    for (const fd of [from, to]) if (fd >= 0) syscalls.close(fd);
  }
}

/** The two directories that content comes from. */
class Sources implements Disposable {
  readonly #directories: Readonly<Record<ContentSource["in"], number>>;

  constructor(place: CodebasePlace) {
    this.#directories = { tree: openPart(place, "tree"), kept: openPart(place, "kept") };
  }

  open({ in: part, path }: ContentSource): number {
    return check("open content", openFileBeneath(this.#directories[part], path));
  }

  /** Gives the file a second name; false where the file system does not allow one (too many, another device). */
  link({ in: part, path }: ContentSource, directory: number, name: string): boolean {
    const [parentPath, last] = splitPath(path);
    const flags = Open.PATH | Open.DIRECTORY;
    const parent = check(
      "open content",
      syscalls.openBeneath(this.#directories[part], parentPath === "" ? "." : bytesOf(parentPath), flags),
    );
    const code = syscalls.linkat(parent, bytesOf(last), directory, name);
    syscalls.close(parent);
    if (code === -Errno.EMLINK || code === -Errno.EXDEV || code === -Errno.EPERM) return false;
    if (code < 0) throw new SystemError("link content", -code);
    return true;
  }

  [Symbol.dispose](): void {
    for (const fd of Object.values(this.#directories)) syscalls.close(fd);
  }
}

/** An entry of a version that is put together; directories come before what is in them. */
export type PinnedEntry =
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string }
  | { readonly kind: "file"; readonly path: string; readonly mode: number; readonly from: ContentSource };

export interface MaterialiseInput extends CodebasePlace {
  readonly version: number;
  readonly entries: readonly PinnedEntry[];
}

/** Puts a version together as pinned/<version>: hard links to the content, so that it costs names and no space. */
export async function materialise(
  input: MaterialiseInput,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  using sources = new Sources(input);
  const pinned = openPart(input, "pinned");
  const unfinished = `${input.version}.unfinished`;
  await removeTree(`/proc/self/fd/${pinned}/${unfinished}`);
  const top = openOrMakePart(input, "pinned", unfinished);
  let parentPath = "";
  let parent = syscalls.dup(top);
  try {
    for (const entry of input.entries) {
      const [directory, last] = splitPath(entry.path);
      if (directory !== parentPath) {
        syscalls.close(parent);
        parent = -1;
        const path = directory === "" ? "." : bytesOf(directory);
        parent = check("open", syscalls.openBeneath(top, path, Open.PATH | Open.DIRECTORY));
        parentPath = directory;
      }
      await add(entry, parent, bytesOf(last), sources, signal);
    }
    const code = syscalls.renameat2(pinned, unfinished, pinned, String(input.version));
    if (code < 0 && code !== -Errno.EEXIST && code !== -Errno.ENOTEMPTY) throw new SystemError("rename", -code);
  } finally {
    for (const fd of [parent, top, pinned]) if (fd >= 0) syscalls.close(fd);
  }
}

async function add(
  entry: PinnedEntry,
  parent: number,
  name: string,
  sources: Sources,
  signal: AbortSignal,
): Promise<void> {
  if (entry.kind === "directory") {
    check("mkdir", syscalls.mkdirat(parent, name, 0o700));
    check("chmod", syscalls.chmodat(parent, name, diskMode("directory", entry.mode)));
  } else if (entry.kind === "symlink") {
    check("symlink", syscalls.symlinkat(bytesOf(entry.target), parent, name));
  } else if (!sources.link(entry.from, parent, name)) {
    const mode = diskMode("file", entry.mode);
    await copyInto(sources.open(entry.from), parent, name, signal, (copy) =>
      check("chmod", syscalls.fchmod(copy, mode)),
    );
  }
}
