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
import { turn, type Walk } from "./walks.ts";

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
  *entry(names: readonly string[], stamp: DeltaStamp | undefined): Walk<boolean> {
    const { writing } = this.#context;
    if (writing === undefined || names.length === 0) return true;
    return yield* this.#within(writing, names, (place, parent) => this.#letGo(writing, names, place, parent, stamp));
  }

  *#letGo(
    writing: Writing,
    names: readonly string[],
    place: SettlingPlace,
    parent: Node,
    stamp: DeltaStamp | undefined,
  ): Walk<boolean> {
    const known = parent.children?.get(place.name);
    if (known !== undefined && known.writers > 0) return false;
    using _hold = known?.isDirectory ? this.#context.moves.hold(known) : undefined;
    const settled = yield* letGo(place, stamp);
    if (settled.outcome === "left") yield* this.#hasLeft(writing, names, parent, settled);
    return settled.outcome !== "stays";
  }

  /** Directories of the delta that nothing is left in, and that were never listed. */
  *emptyDirectories(): Walk<void> {
    const { writing } = this.#context;
    if (writing === undefined) return;
    const deepestFirst = [...this.#left.values()].sort((a, b) => b.length - a.length);
    for (const start of deepestFirst) {
      for (let names = start; names.length > 0; names = names.slice(0, -1)) {
        if (!(yield* this.#within(writing, names, (place, parent) => this.#letGoEmpty(writing, names, place, parent))))
          break;
      }
    }
  }

  *#letGoEmpty(writing: Writing, names: readonly string[], place: SettlingPlace, parent: Node): Walk<boolean> {
    const known = parent.children?.get(place.name);
    using _hold = known === undefined ? undefined : this.#context.moves.hold(known);
    const settled = yield* letGoDirectory(place);
    if (settled.outcome === "left") yield* this.#hasLeft(writing, names, parent, settled);
    return settled.outcome === "left";
  }

  /** Runs with the place of a path's last name; what the delta does not reach has nothing to settle. */
  *#within(
    writing: Writing,
    names: readonly string[],
    run: (place: SettlingPlace, parent: Node) => Walk<boolean>,
  ): Walk<boolean> {
    const { tree } = this.#context;
    const bound: Node[] = [];
    turn.entries += names.length;
    try {
      let parent = tree.root;
      for (const [index, name] of names.slice(0, -1).entries()) {
        if (!(yield* this.#open(writing, parent, names, index))) return false;
        if (!parent.inDelta || tree.resolve(parent, name) !== 0) return true;
        parent = tree.bind(parent, name);
        parent.pins += 1;
        bound.push(parent);
        if (!parent.isDirectory) return true;
      }
      if (!parent.inDelta) return true;
      if (!(yield* this.#open(writing, parent, names, names.length - 1))) return false;
      yield;
      const held = tree.descriptors.get(parent, DELTA);
      if (held < 0) return false;
      const directory = syscalls.dup(held);
      const lowers = this.#lowersOf(parent);
      try {
        return yield* run({ delta: writing.delta, directory, lowers, name: names.at(-1)! }, parent);
      } finally {
        for (const fd of [directory, ...lowers]) syscalls.close(fd);
      }
    } finally {
      for (const node of bound.reverse()) {
        node.pins -= 1;
        tree.release(node);
      }
    }
  }

  // The caller's own, for those of the tree may be closed in a pause.
  #lowersOf(directory: Node): number[] {
    const { descriptors } = this.#context.tree;
    return directory.layers
      .filter((layer) => layer !== DELTA)
      .map((layer) => descriptors.get(directory, layer))
      .filter((fd) => fd >= 0)
      .map((fd) => syscalls.dup(fd));
  }

  // A directory that is shut against the codebase has no layer of it; its parent has.
  *#open(writing: Writing, directory: Node, names: readonly string[], levels: number): Walk<boolean> {
    const { tree } = this.#context;
    const { parent } = directory;
    if (!directory.inDelta || directory.layers.length > 1 || parent === undefined) return true;
    const held = tree.descriptors.get(directory, DELTA);
    if (held < 0) return false;
    const fd = syscalls.dup(held);
    const above = this.#lowersOf(parent);
    const lowers = above
      .map((lower) => syscalls.openat(lower, directory.name, syscalls.Open.RDONLY | syscalls.Open.DIRECTORY))
      .filter((lower) => lower >= 0);
    using _hold = this.#context.moves.hold(directory);
    try {
      const code = yield* openToCodebase(writing.delta, fd, lowers);
      directory.whiteouts = undefined;
      yield* this.#refresh.path(names.slice(0, levels), "settled");
      return code === 0;
    } finally {
      for (const each of [fd, ...above, ...lowers]) syscalls.close(each);
    }
  }

  *#hasLeft(
    writing: Writing,
    names: readonly string[],
    parent: Node,
    { entry, lower }: Extract<Settled, { outcome: "left" }>,
  ): Walk<void> {
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
      yield* this.#refresh.path(names, isSameContent(entry, lower) ? "settled" : "replaced");
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
    quota.used.bytes += charge;
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
