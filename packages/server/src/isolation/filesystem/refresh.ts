import { LEVEL } from "@agentfense/permission";
import type { Context } from "./context.ts";
import type { Node } from "./node.ts";
import { turn, type Walk } from "./walks.ts";

/** A name the kernel must not be sure of any more. */
export interface StaleEntry {
  readonly parent: number;
  readonly name: string;
  /** It is enough to look again before the next use; otherwise all that is remembered below goes too. */
  readonly expireOnly?: boolean;
}

/** What the kernel must be told to forget, by a thread that does not serve. */
export interface StaleReport {
  readonly inodes: readonly number[];
  readonly entries: readonly StaleEntry[];
}

/**
 * What happened at a path.
 *
 *   replaced   there may be something else there now, or nothing
 *   settled    the delta let go of what the codebase has too: the content is the same, the layer another
 */
export type Cause = "replaced" | "settled";

/**
 * Brings what the mount thread and the kernel remember up to date with the layers, path by path: somebody else has changed the codebase,
 * or the delta. Only nodes on the paths are looked at, and what is below a directory that is gone or another one. What the
 * rules hide is not touched, so that nothing shows that it changed.
 *
 * The mount thread's own knowledge is right when path() returns. Attributes and listings of the kernel are dropped by finish(), from
 * the serving thread; names are reported, for that can block.
 */
export class Refresh {
  /** Files of the delta that were found to be gone from it, by their inode there. */
  readonly lost = new Map<number, Node>();
  readonly #context: Context;
  readonly #inodes = new Set<number>();
  readonly #entries = new Map<string, StaleEntry>();
  readonly #attributes = new Set<number>();
  readonly #listings = new Set<number>();
  /** Directories that were looked at on the way to an earlier path. */
  readonly #passed = new Set<string>();
  /** Directories whose known content may be another. */
  readonly #pending: Node[] = [];

  constructor(context: Context) {
    this.#context = context;
  }

  *path(names: readonly string[], cause: Cause): Walk<void> {
    const { tree } = this.#context;
    const pinned: Node[] = [];
    try {
      yield* this.#path(names, cause, pinned);
    } finally {
      for (const node of pinned.reverse()) {
        node.pins -= 1;
        tree.release(node);
      }
    }
  }

  *#path(names: readonly string[], cause: Cause, pinned: Node[]): Walk<void> {
    const { tree } = this.#context;
    let directory = tree.root;
    for (const [index, name] of names.entries()) {
      turn.entries += 1;
      // Whether a directory that the rules hide exists depends on what is below it.
      directory.doubtPassage();
      const scope = tree.childScope(directory, name);
      const isHidden = scope.level === LEVEL.none;
      if (isHidden && !scope.mayShowBelow && directory.children?.get(name) === undefined) break;
      const isTarget = index === names.length - 1;
      const entry = yield* isTarget ? this.#entry(directory, name, cause) : this.#passing(directory, name);
      if (isHidden) {
        entry?.doubtPassage();
        yield* this.#nameChanged(directory, name);
      }
      if (entry === undefined || !entry.isDirectory) break;
      directory = entry;
      directory.pins += 1;
      pinned.push(directory);
    }
    yield* this.#contentOfPending();
    yield;
  }

  /** Names came to a directory, or left it. */
  listing(directory: Node): void {
    this.#listings.add(directory.id);
  }

  /** Drops the kernel's attributes and listings; what is left to drop is in the answer. */
  *finish(): Walk<StaleReport> {
    for (const id of this.#listings) {
      this.#context.staleListing(id);
      turn.entries += 1;
      yield;
    }
    for (const id of this.#attributes) {
      if (!this.#listings.has(id)) this.#context.staleAttributes(id);
      turn.entries += 1;
      yield;
    }
    return { inodes: [...this.#inodes], entries: [...this.#entries.values()] };
  }

  *#passing(directory: Node, name: string): Walk<Node | undefined> {
    const key = keyOf(directory, name);
    if (this.#passed.has(key)) return directory.children?.get(name);
    this.#passed.add(key);
    return yield* this.#entry(directory, name, undefined);
  }

  /** The node of a name, if there still is one. Without a cause only a directory on the way is of interest. */
  *#entry(parent: Node, name: string, cause: Cause | undefined): Walk<Node | undefined> {
    const { tree } = this.#context;
    const known = parent.children?.get(name);
    const exists = tree.resolve(parent, name) === 0;
    if (!exists) tree.inodes.forgetPath(parent.ino, name);
    if (known === undefined) {
      yield* this.#nameChanged(parent, name);
      return undefined;
    }
    if (!exists || tree.stat.type !== known.type) {
      yield* this.#lose(known, parent, name, { superseded: exists });
      yield* this.#nameChanged(parent, name);
      return undefined;
    }
    if (known.isDirectory) this.#directory(known, parent, name, cause);
    else if (cause !== undefined) yield* this.#file(known, parent, name, cause);
    return known;
  }

  *#file(known: Node, parent: Node, name: string, cause: Cause): Walk<void> {
    const { tree } = this.#context;
    const isOwn = tree.stack.isOwn(tree.foundLayers[0]!);
    if (isOwn && known.isOwn && known.deltaInode === tree.stat.ino) return; // shadows whatever happened
    this.#attributes.add(parent.id);
    const keeps = cause === "settled" && known.isOwn && !isOwn;
    // It may have been written to where it is; whoever has it open has the right one.
    const isSame = !known.isOwn && !isOwn && known.lowerInode === tree.foundLower && known.openCount > 0;
    if (known.inDelta && known.openCount > 0) this.lost.set(known.deltaInode, known);
    if (keeps) tree.handOver(known);
    else if (isSame) tree.remember(known);
    else if (isOwn || tree.replaceContent(known, parent, name) === undefined) {
      if (isOwn) yield* this.#lose(known, parent, name, { superseded: true });
      yield* this.#nameChanged(parent, name);
      return;
    }
    this.#attributes.add(known.id);
    // A link's target is cached in its pages, which no open drops; and what is open is not opened again.
    if (!known.isRegular || (known.openCount > 0 && !keeps)) this.#inodes.add(known.id);
  }

  #directory(known: Node, parent: Node, name: string, cause: Cause | undefined): void {
    const { tree } = this.#context;
    const layers = tree.foundLayers;
    const { top } = tree.stack;
    const lower = tree.stack.isOwn(layers.at(-1)!) ? 0 : tree.foundLower;
    const leftDelta = cause !== "settled" && known.inDelta && (layers[0] !== top || known.deltaInode !== tree.stat.ino);
    const isOther = leftDelta || (known.lowerInode !== 0 && known.lowerInode !== lower);
    this.#attributes.add(known.id);
    if (!isOther && known.layers.length === layers.length && known.inDelta === (layers[0] === top)) {
      tree.remember(known);
      return;
    }
    // Names that a whiteout or the whole directory hid, and that nobody has a node for.
    for (const hidden of known.whiteouts ?? []) if (isOther) this.#expire(known, hidden);
    if (leftDelta && !known.hasLower) this.#drop(parent, name);
    const { listing } = known;
    tree.adopt(known);
    // The names are the same as before, and somebody may be in the middle of them.
    if (cause === "settled" && !isOther) known.listing = listing;
    else this.#listings.add(known.id);
    if (!isOther) return;
    known.pins += 1;
    this.#pending.push(known);
  }

  *#contentOfPending(): Walk<void> {
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) {
      try {
        // Names that come meanwhile come from what is there now.
        const end = next.children?.size ?? 0;
        let done = 0;
        for (const name of next.children?.keys() ?? []) {
          if (done++ >= end) break;
          turn.entries += 1;
          yield* this.#entry(next, name, "replaced");
          yield;
        }
      } finally {
        next.pins -= 1;
        this.#context.tree.release(next);
      }
    }
  }

  /** A node without a name any more, and with it all nodes below. From below, so that nobody looks for a directory that is cut
   * off already.
   */
  *#lose(top: Node, parent: Node, name: string, { superseded }: { superseded: boolean }): Walk<void> {
    const { tree } = this.#context;
    if (top.isDirectory) this.#drop(parent, name);
    const path = [lostAt(top, parent, name)];
    try {
      for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
        turn.entries += 1;
        yield;
        const next = last.children?.next();
        if (next !== undefined && !next.done) {
          path.push(lostAt(next.value[1], last.node, next.value[0]));
          continue;
        }
        path.pop();
        last.node.pins -= 1;
        if (last.node.inDelta && last.node.isRegular) this.lost.set(last.node.deltaInode, last.node);
        const isBound = last.parent.children?.get(last.name) === last.node;
        if (isBound) tree.cutOff(last.node, last.parent, last.name, { superseded: last.node === top && superseded });
        else tree.release(last.node);
      }
    } finally {
      for (const { node } of path) {
        node.pins -= 1;
        tree.release(node);
      }
    }
  }

  *#nameChanged(parent: Node, name: string): Walk<void> {
    this.#expire(parent, name);
    this.#listings.add(parent.id);
    if (parent.listing === undefined) return;
    const { tree } = this.#context;
    const shown = yield* tree.walkVisible(parent, name);
    const node = typeof shown === "number" ? undefined : shown;
    const { listing } = parent;
    if (listing === undefined) {
      if (node !== undefined) tree.release(node);
      return;
    }
    const position = listing.positionOf(name);
    const isRight =
      position === undefined || node === undefined
        ? position === node
        : listing.types[position] === node.type >> 12 && [0, node.ino].includes(listing.inodes[position]!);
    if (!isRight) {
      listing.remove(name);
      if (node !== undefined) listing.add(name, node.type >> 12, node.ino);
    }
    if (node !== undefined) tree.release(node);
  }

  /** With all that the kernel remembers below, names that are not there included. */
  #drop(parent: Node, name: string): void {
    this.#entries.set(keyOf(parent, name), { parent: parent.id, name });
  }

  #expire(parent: Node, name: string): void {
    const key = keyOf(parent, name);
    if (!this.#entries.has(key)) this.#entries.set(key, { parent: parent.id, name, expireOnly: true });
  }
}

interface Lost {
  readonly node: Node;
  readonly parent: Node;
  readonly name: string;
  readonly children: IterableIterator<[string, Node]> | undefined;
}

/** Keeps the node until it is dealt with. */
function lostAt(node: Node, parent: Node, name: string): Lost {
  node.pins += 1;
  return { node, parent, name, children: node.children?.entries() };
}

function keyOf(parent: Node, name: string): string {
  return `${parent.id}/${name}`;
}
