import { check, Errno, SystemError, syscalls } from "@agentfense/fuse";
import { bytesOf } from "../filesystem/names.ts";
import { removeTree } from "../filesystem/remove-tree.ts";
import { type ContentSource, copyInto, Sources } from "./copying.ts";
import { type CodebasePlace, diskMode, openOrMakePart, openPart, splitPath } from "./layout.ts";

const { Open } = syscalls;

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
