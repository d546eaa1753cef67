import { syscalls } from "@agentfense/fuse";
import type { Context, Writing } from "./context.ts";
import { type Delta, openDirectoryAt } from "./delta.ts";
import { closing } from "./descriptors.ts";
import { walkDirectory } from "./directory-reader.ts";
import type { Node } from "./node.ts";
import type { Quota } from "./quota.ts";
import { Refresh } from "./refresh.ts";
import {
  type DeltaStamp,
  letGo,
  letGoDirectory,
  openToCodebase,
  type Settled,
  type SettlingPlace,
} from "./settlement.ts";
import { turn, type Walk } from "./walks.ts";
import { whiteoutFor } from "./whiteouts.ts";

const { FileType, Stat } = syscalls;

/** How far the clock of the codebase's file system may be behind ours. */
const SLACK_MS = 1_000;

/** Changes of a live workspace that do not come through its mount: the codebase's, and those of the delta by its owner. */
export class Upkeep {
  readonly #context: Context;
  readonly #stat = new Stat();
  #lookedAtMs = Date.now();
  #leading: { readonly turn: number; readonly nodes: ReadonlySet<Node> } = { turn: -1, nodes: new Set() };

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * For codebases that change without a word: refreshes what may have changed since the last time, or since the mount. Nobody
   * can set the time of the last change of an inode (its ctime), and a name that comes or goes changes that of its directory.
   * Only what the kernel knows is looked at, at the price of a stat each.
   */
  *lookAgain(refresh: Refresh): Walk<void> {
    const { tree } = this.#context;
    const sinceMs = this.#lookedAtMs - SLACK_MS;
    this.#lookedAtMs = Date.now();
    for (const node of tree.presentNodes()) {
      turn.entries += 1;
      yield;
      const layer = node.layers.find((each) => each >= 0 && !tree.stack.isOwn(each));
      if (node.removed || layer === undefined) continue;
      tree.descriptors.trim();
      node.pins += 1;
      try {
        yield* this.#lookAt(node, layer, sinceMs, refresh);
      } finally {
        node.pins -= 1;
        tree.release(node);
      }
    }
  }

  *#lookAt(node: Node, layer: number, sinceMs: number, refresh: Refresh): Walk<void> {
    const { descriptors } = this.#context.tree;
    const stat = this.#stat;
    const held = node.isDirectory ? node : node.parent;
    const fd = held === undefined ? -1 : descriptors.get(held, layer);
    const isThere =
      fd >= 0 && (node.isDirectory ? syscalls.fstat(fd, stat) : syscalls.statat(fd, node.name, stat)) === 0;
    if (isThere && stat.ctime * 1000 + stat.ctimeNs / 1_000_000 < sinceMs) return;
    const path: string[] = [];
    for (let each: Node | undefined = node; each?.parent !== undefined; each = each.parent) path.unshift(each.name);
    // Names that are new may have been asked for before they were there, those that are gone may have been listed.
    const listsAnew = node.isDirectory && isThere;
    const names = new Set(listsAnew ? [...(node.children?.keys() ?? []), ...(node.listing?.names ?? [])] : []);
    names.delete(""); // a hole in the listing
    if (listsAnew) yield* walkDirectory(fd, (name) => void names.add(name));
    if (path.length > 0) yield* refresh.path(path, "replaced");
    for (const name of names) yield* refresh.path([...path, name], "replaced");
    if (node.isDirectory) refresh.listing(node);
  }

  /** Undefined when the workspace is read-only. */
  get delta(): Delta | undefined {
    return this.#context.writing?.delta;
  }

  /** One serves for all paths of a change. */
  refresh(): Refresh {
    return new Refresh(this.#context);
  }

  settling(refresh: Refresh): Settling {
    return new Settling(this.#context, refresh);
  }

  /** The delta has a version of its own of the path: a file, a link or a deletion. */
  shadows(names: readonly string[]): boolean {
    const name = names.at(-1);
    if (this.delta === undefined || name === undefined) return false;
    const { root, descriptors, stack } = this.#context.tree;
    for (const layer of root.layers.filter((each) => stack.isOwn(each))) {
      const top = descriptors.get(root, layer);
      const directory = top < 0 ? top : openDirectoryAt(top, names.slice(0, -1));
      if (directory < 0) continue;
      using _open = closing(directory);
      const stat = new Stat();
      if (syscalls.statat(directory, name, stat) === 0) return stat.type !== FileType.DIRECTORY;
      if (syscalls.statat(directory, whiteoutFor(name).name, stat) === 0) return true;
    }
    return false;
  }

  /** Something at or below the path is open for writing. */
  isWritten(names: readonly string[]): boolean {
    const node = this.#known(names);
    return node !== undefined && this.#leadingToWriters().has(node);
  }

  // Worked out once for all that is asked in a turn.
  #leadingToWriters(): ReadonlySet<Node> {
    if (this.#leading.turn === turn.number) return this.#leading.nodes;
    const nodes = new Set<Node>();
    for (const written of this.#context.tree.written) {
      nodes.add(written);
      for (const { parent } of written.names()) {
        for (let each: Node | undefined = parent; each !== undefined && !nodes.has(each); each = each.parent)
          nodes.add(each);
      }
    }
    this.#leading = { turn: turn.number, nodes };
    return nodes;
  }

  /** Whiteouts of a directory were lifted. */
  forgetWhiteouts(names: readonly string[]): void {
    const directory = this.#known(names);
    if (directory !== undefined) directory.whiteouts = undefined;
  }

  /** An entry that the refresh found to be gone takes no space in the delta any more, unless somebody has it open. */
  removedFromDelta(stat: syscalls.Stat, refresh: Refresh): void {
    const { writing, tree } = this.#context;
    const isLast = stat.nlink === 1 && stat.type !== FileType.DIRECTORY;
    const node = isLast ? refresh.lost.get(stat.ino) : undefined;
    if (isLast) tree.inodes.release(stat.ino);
    if (node === undefined) writing?.quota?.forget(stat);
    else {
      writing?.quota?.takeFiles(-1);
      tree.openings.unlinked(node);
    }
  }

  #known(names: readonly string[]): Node | undefined {
    let node: Node | undefined = this.#context.tree.root;
    for (const name of names) node = node?.children?.get(name);
    return node;
  }
}

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
    const outcome = yield* this.#within(names, (place) => letGo(place, stamp));
    return outcome !== "stays";
  }

  /** Directories of the delta that nothing is left in, and that were never listed. */
  *emptyDirectories(): Walk<void> {
    const deepestFirst = [...this.#left.values()].sort((a, b) => b.length - a.length);
    for (const start of deepestFirst) {
      for (let names = start; names.length > 0; names = names.slice(0, -1)) {
        if ((yield* this.#within(names, letGoDirectory)) !== "left") break;
      }
    }
  }

  /** Has the last name of a path leave; what the delta does not reach has nothing to settle. */
  *#within(names: readonly string[], leave: (place: SettlingPlace) => Walk<Settled>): Walk<Settled["outcome"]> {
    const { tree, writing } = this.#context;
    if (writing === undefined || names.length === 0) return "nothing";
    const bound: Node[] = [];
    turn.entries += names.length;
    try {
      let parent = tree.root;
      for (const [index, name] of names.slice(0, -1).entries()) {
        if (!(yield* this.#open(writing, parent, names, index))) return "stays";
        if (!parent.inDelta || tree.resolve(parent, name) !== 0) return "nothing";
        parent = tree.bind(parent, name);
        parent.pins += 1;
        bound.push(parent);
        if (!parent.isDirectory) return "nothing";
      }
      if (!parent.inDelta) return "nothing";
      if (!(yield* this.#open(writing, parent, names, names.length - 1))) return "stays";
      yield;
      return yield* this.#leave(writing, names, parent, leave);
    } finally {
      for (const node of bound.reverse()) {
        node.pins -= 1;
        tree.release(node);
      }
    }
  }

  *#leave(
    writing: Writing,
    names: readonly string[],
    parent: Node,
    leave: (place: SettlingPlace) => Walk<Settled>,
  ): Walk<Settled["outcome"]> {
    const name = names.at(-1)!;
    const held = this.#context.tree.descriptors.get(parent, this.#context.tree.stack.top);
    const known = parent.children?.get(name);
    if (held < 0 || (known !== undefined && known.writers > 0)) return "stays";
    const directory = syscalls.dup(held);
    const lowers = this.#lowersOf(parent);
    using _hold = known?.isDirectory ? this.#context.moves.hold(known) : undefined;
    using _open = closing(directory, ...lowers);
    const settled = yield* leave({ delta: writing.delta, directory, lowers, name });
    if (settled.outcome === "left") yield* this.#hasLeft(writing, names, parent, settled);
    return settled.outcome;
  }

  // The caller's own, for those of the tree may be closed in a pause.
  #lowersOf(directory: Node): number[] {
    const { descriptors, stack } = this.#context.tree;
    return directory.layers
      .filter((layer) => layer !== stack.top)
      .map((layer) => descriptors.get(directory, layer))
      .filter((fd) => fd >= 0)
      .map((fd) => syscalls.dup(fd));
  }

  // A directory that is shut against the codebase has no layer of it; its parent has.
  *#open(writing: Writing, directory: Node, names: readonly string[], levels: number): Walk<boolean> {
    const { tree } = this.#context;
    const { parent } = directory;
    if (!directory.inDelta || directory.layers.length > 1 || parent === undefined) return true;
    const held = tree.descriptors.get(directory, tree.stack.top);
    if (held < 0) return false;
    const fd = syscalls.dup(held);
    const above = this.#lowersOf(parent);
    const lowers = above
      .map((lower) => syscalls.openat(lower, directory.name, syscalls.Open.RDONLY | syscalls.Open.DIRECTORY))
      .filter((lower) => lower >= 0);
    using _hold = this.#context.moves.hold(directory);
    using _open = closing(fd, ...above, ...lowers);
    const code = yield* openToCodebase(writing.delta, fd, lowers);
    directory.whiteouts = undefined;
    yield* this.#refresh.path(names.slice(0, levels), "settled");
    return code === 0;
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
