import { syscalls } from "@agentfense/fuse";
import type { Context } from "./context.ts";
import { type Delta, openDirectoryAt } from "./delta.ts";
import { walkDirectory } from "./directory-reader.ts";
import { DELTA, type Node } from "./node.ts";
import { Refresh } from "./refresh.ts";
import { Settling } from "./settling.ts";
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
      const layer = node.layers.find((each) => each !== DELTA);
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
    const directory = openDirectoryAt(this.delta.tree, names.slice(0, -1));
    if (directory < 0) return false;
    try {
      const stat = new Stat();
      if (syscalls.statat(directory, name, stat) === 0) return stat.type !== FileType.DIRECTORY;
      return syscalls.statat(directory, whiteoutFor(name).name, stat) === 0;
    } finally {
      syscalls.close(directory);
    }
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
