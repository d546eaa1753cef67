import { syscalls } from "@agentfense/fuse";
import type { Context, Writing } from "./context.ts";
import { DELTA, type Node } from "./node.ts";
import type { Quota } from "./quota.ts";
import type { Refresh } from "./refresh.ts";
import {
  type DeltaStamp,
  letGo,
  letGoDirectory,
  openToCodebase,
  type Settled,
  type SettlingPlace,
} from "./settlement.ts";

const { FileType } = syscalls;

/** Lets entries leave the delta of a live workspace, once the codebase has them. */
export class Settling {
  readonly #context: Context;
  readonly #refresh: Refresh;
  /** Directories that something left, by their path, deepest last. */
  readonly #left = new Map<string, readonly string[]>();

  constructor(context: Context, refresh: Refresh) {
    this.#context = context;
    this.#refresh = refresh;
  }

  /** False if the entry stays: it is another one by now, or in use for writing. */
  entry(names: readonly string[], stamp: DeltaStamp | undefined): boolean {
    const { writing } = this.#context;
    if (writing === undefined || names.length === 0) return true;
    return this.#within(writing, names, (place, parent) => {
      const known = parent.children?.get(place.name);
      if (known !== undefined && known.writers > 0) return false;
      const settled = letGo(place, stamp);
      if (settled.outcome === "left") this.#hasLeft(writing, names, parent, settled);
      return settled.outcome !== "stays";
    });
  }

  /** Directories of the delta that nothing is left in, and that were never listed. */
  emptyDirectories(): void {
    const { writing } = this.#context;
    if (writing === undefined) return;
    const deepestFirst = [...this.#left.values()].sort((a, b) => b.length - a.length);
    for (const start of deepestFirst) {
      for (let names = start; names.length > 0; names = names.slice(0, -1)) {
        const gone = this.#within(writing, names, (place, parent) => {
          const settled = letGoDirectory(place);
          if (settled.outcome === "left") this.#hasLeft(writing, names, parent, settled);
          return settled.outcome === "left";
        });
        if (!gone) break;
      }
    }
  }

  /** Runs with the place of a path's last name; what the delta does not reach has nothing to settle. */
  #within(writing: Writing, names: readonly string[], run: (place: SettlingPlace, parent: Node) => boolean): boolean {
    const { tree } = this.#context;
    const bound: Node[] = [];
    try {
      let parent = tree.root;
      for (const [index, name] of names.slice(0, -1).entries()) {
        if (!this.#open(writing, parent, names.slice(0, index))) return false;
        if (!parent.inDelta || tree.resolve(parent, name) !== 0) return true;
        parent = tree.bind(parent, name);
        parent.pins += 1;
        bound.push(parent);
        if (!parent.isDirectory) return true;
      }
      if (!parent.inDelta) return true;
      if (!this.#open(writing, parent, names.slice(0, -1))) return false;
      const directory = tree.descriptors.get(parent, DELTA);
      if (directory < 0) return false;
      return run({ delta: writing.delta, directory, lowers: this.#lowersOf(parent), name: names.at(-1)! }, parent);
    } finally {
      for (const node of bound.reverse()) {
        node.pins -= 1;
        tree.release(node);
      }
    }
  }

  #lowersOf(directory: Node): number[] {
    const { descriptors } = this.#context.tree;
    return directory.layers
      .filter((layer) => layer !== DELTA)
      .map((layer) => descriptors.get(directory, layer))
      .filter((fd) => fd >= 0);
  }

  // A directory that is shut against the codebase has no layer of it; its parent has.
  #open(writing: Writing, directory: Node, names: readonly string[]): boolean {
    const { tree } = this.#context;
    const { parent } = directory;
    if (!directory.inDelta || directory.layers.length > 1 || parent === undefined) return true;
    const fd = tree.descriptors.get(directory, DELTA);
    if (fd < 0) return false;
    const lowers: number[] = [];
    for (const lower of this.#lowersOf(parent)) {
      const below = syscalls.openat(lower, directory.name, syscalls.Open.RDONLY | syscalls.Open.DIRECTORY);
      if (below < 0) continue;
      lowers.push(below);
    }
    const code = openToCodebase(writing.delta, fd, lowers);
    for (const lower of lowers) syscalls.close(lower);
    directory.whiteouts = undefined;
    this.#refresh.path(names, "settled");
    return code === 0;
  }

  #hasLeft(
    writing: Writing,
    names: readonly string[],
    parent: Node,
    { entry, lower }: Extract<Settled, { outcome: "left" }>,
  ): void {
    const { tree } = this.#context;
    const name = names.at(-1)!;
    parent.whiteouts?.delete(name);
    const known = parent.children?.get(name);
    if (entry !== undefined) {
      writing.quota?.takeFiles(-1);
      if (lower === undefined) tree.inodes.release(entry.ino);
      else tree.inodes.handOver(entry.ino, parent.ino, name);
    }
    if (entry !== undefined || lower !== undefined) {
      this.#refresh.path(names, isSameContent(entry, lower) ? "settled" : "replaced");
    }
    if (entry?.type === FileType.REGULAR && writing.quota) letGoOfSpace(writing.quota, entry, known);
    const above = names.slice(0, -1);
    this.#left.set(above.join("/"), above);
  }
}

/** The space of a file that left the delta is free once nobody has that file open any more. */
function letGoOfSpace(quota: Quota, entry: syscalls.Stat, known: Node | undefined): void {
  const left = { deltaInode: entry.ino, size: entry.size };
  if (known === undefined || known.openCount === 0) quota.free(left);
  else if (!known.inDelta) {
    const charge = quota.free(left);
    known.owed += charge;
    quota.usedBytes += charge;
  }
  // Otherwise the node is what is left of the delta's file, and gives it back.
}

/** The codebase's file is the copy of the delta's: a copy takes over the time, and nobody made a newer one since. */
function isSameContent(entry: syscalls.Stat | undefined, lower: syscalls.Stat | undefined): boolean {
  if (entry === undefined || lower === undefined || entry.type !== lower.type) return false;
  if (entry.type === FileType.DIRECTORY) return true;
  if (entry.type !== FileType.REGULAR) return false;
  return entry.size === lower.size && entry.mtime === lower.mtime && entry.mtimeNs === lower.mtimeNs;
}
