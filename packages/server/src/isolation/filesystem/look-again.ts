import { syscalls } from "@agentfense/fuse";
import { walkDirectory } from "./directory-reader.ts";
import { DELTA, type Node } from "./node.ts";
import type { Refresh } from "./refresh.ts";
import type { Tree } from "./tree.ts";
import { turn, type Walk } from "./walks.ts";

const { Stat } = syscalls;

/** How far the clock of the codebase's file system may be behind ours. */
const SLACK_MS = 1_000;

/**
 * Compares what is remembered with a codebase that others change without telling: nobody can set the time of the last change
 * of an inode (its ctime), and a name that comes or goes changes that of its directory. Only what the kernel knows is
 * looked at, at the price of a stat each.
 */
export class LookAgain {
  readonly #tree: Tree;
  readonly #sinceMs: number;
  readonly #stat = new Stat();

  constructor(tree: Tree, sinceMs: number) {
    this.#tree = tree;
    this.#sinceMs = sinceMs - SLACK_MS;
  }

  /** Refreshes all that may have changed. */
  *walk(refresh: Refresh): Walk<void> {
    for (const node of this.#tree.presentNodes()) {
      turn.entries += 1;
      yield;
      const layer = node.layers.find((each) => each !== DELTA);
      if (node.removed || layer === undefined) continue;
      this.#tree.descriptors.trim();
      node.pins += 1;
      try {
        if (node.isDirectory) yield* this.#directory(node, layer, refresh);
        else if (this.#isChanged(node, layer)) yield* refresh.path(pathOf(node), "replaced");
      } finally {
        node.pins -= 1;
        this.#tree.release(node);
      }
    }
  }

  #isChanged(file: Node, layer: number): boolean {
    const directory = file.parent === undefined ? -1 : this.#tree.descriptors.get(file.parent, layer);
    const found = directory >= 0 && syscalls.statat(directory, file.name, this.#stat) === 0;
    return !found || this.#isRecent();
  }

  *#directory(node: Node, layer: number, refresh: Refresh): Walk<void> {
    const path = pathOf(node);
    const fd = this.#tree.descriptors.get(node, layer);
    const isThere = fd >= 0 && syscalls.fstat(fd, this.#stat) === 0;
    if (isThere && !this.#isRecent()) return;
    // Names that are new may have been asked for before they were there, those that are gone may have been listed.
    const names = new Set(isThere ? [...(node.children?.keys() ?? []), ...(node.listing?.names ?? [])] : []);
    names.delete(""); // a hole in the listing
    if (isThere) yield* walkDirectory(fd, (name) => void names.add(name));
    if (path.length > 0) yield* refresh.path(path, "replaced");
    for (const name of names) yield* refresh.path([...path, name], "replaced");
    refresh.listing(node);
  }

  #isRecent(): boolean {
    return this.#stat.ctime * 1000 + this.#stat.ctimeNs / 1_000_000 >= this.#sinceMs;
  }
}

function pathOf(node: Node): string[] {
  const names: string[] = [];
  for (let each: Node | undefined = node; each?.parent !== undefined; each = each.parent) names.push(each.name);
  return names.reverse();
}
