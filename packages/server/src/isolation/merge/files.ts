import { syscalls } from "@agentfense/fuse";
import { readAt } from "../changes/binary-patch.ts";
import { ChangesError } from "../changes/changes-error.ts";
import { type EntryHandle, MODE_BITS, openRegular, readTarget, sameBytes, statOf } from "../changes/comparison.ts";
import { openDeltaFile } from "../changes/destination.ts";
import { pathText } from "../changes/walk.ts";
import { openDirectoryAt } from "../filesystem/delta.ts";
import { closing } from "../filesystem/descriptors.ts";
import { textOf } from "../filesystem/names.ts";
import { ownRights } from "../filesystem/own-rights.ts";
import { namesIn } from "../filesystem/settlement.ts";
import type { Contents, Entry, MergeTarget } from "./plan.ts";

const { FileType, Open, Stat } = syscalls;

/** A file on disk, found again by its names, as it was when it was looked at. */
export interface FileOnDisk {
  readonly root: number;
  readonly isDelta: boolean;
  readonly names: readonly string[];
  readonly stat: syscalls.Stat;
}

export const ON_DISK: Contents<FileOnDisk> = {
  size: ({ stat }) => stat.size,
  async same(a, b) {
    if (a.stat.ino === b.stat.ino && a.root === b.root) return true;
    using left = reach(a);
    using right = reach(b);
    const [first, second] = [openAt(left, a), openAt(right, b)];
    using _open = closing(first, second);
    return await sameBytes(first, second);
  },
  async read(file) {
    using place = reach(file);
    const stat = new Stat();
    const fd = openAt(place, file, stat);
    using _open = closing(fd);
    const bytes = fd < 0 || stat.size !== file.stat.size ? undefined : readAt(fd, 0, stat.size);
    if (bytes === undefined) throw new ChangesError("DELTA_UNUSABLE", `${pathText(file.names)} cannot be read`);
    return bytes.toString("latin1");
  },
};

function openAt(place: EntryHandle, { isDelta }: FileOnDisk, stat = new Stat()): number {
  return isDelta ? openDeltaFile(place, stat) : openRegular(place, stat);
}

/** The place of a file, for as long as it is not disposed of; what the agent shut is open to us meanwhile. */
export function reach({ root, isDelta, names }: Omit<FileOnDisk, "stat">): EntryHandle & Disposable {
  using stack = new DisposableStack();
  let directory = syscalls.dup(root);
  stack.use(closing(directory));
  for (const name of names.slice(0, -1)) {
    if (isDelta) stack.use(ownRights(directory));
    directory = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
    stack.use(closing(directory));
  }
  if (isDelta && directory >= 0) stack.use(ownRights(directory));
  const held = stack.move();
  return { directory, name: names.at(-1)!, [Symbol.dispose]: () => held.dispose() };
}

export class DirectoryTarget implements MergeTarget<FileOnDisk> {
  readonly name: string;
  readonly root: number;

  constructor(name: string, root: number) {
    this.name = name;
    this.root = root;
  }

  entry(path: string): Entry<FileOnDisk> | undefined {
    const names = path.split("/");
    using place = reach({ root: this.root, isDelta: false, names });
    const stat = statOf(place);
    return stat && entryAt(place, stat, { root: this.root, isDelta: false, names });
  }

  names(path: string): readonly string[] {
    const directory = openDirectoryAt(this.root, path === "" ? [] : path.split("/"));
    if (directory < 0) return [];
    using _path = closing(directory);
    const listed = syscalls.openat(directory, ".", Open.RDONLY | Open.DIRECTORY);
    if (listed < 0) throw new ChangesError("CODEBASE_UNUSABLE", `/${textOf(path)} cannot be read`);
    using _open = closing(listed);
    return namesIn([listed]);
  }
}

export function entryAt(place: EntryHandle, stat: syscalls.Stat, file: Omit<FileOnDisk, "stat">): Entry<FileOnDisk> {
  const mode = stat.mode & MODE_BITS;
  if (stat.type === FileType.REGULAR) return { kind: "file", mode, content: { ...file, stat } };
  if (stat.type === FileType.DIRECTORY) return { kind: "directory", mode };
  const target = stat.type === FileType.SYMLINK ? readTarget(place) : undefined;
  return target === undefined ? { kind: "other" } : { kind: "symlink", target };
}
