import { syscalls } from "@agentfense/fuse";
import { readDirectory } from "./directory-reader.ts";
import { DELTA, type Node } from "./node.ts";
import type { Tree } from "./tree.ts";

const { Stat } = syscalls;

/** How far the clock of the codebase's file system may be behind ours. */
const SLACK_MS = 1_000;

/**
 * Compares what is remembered with a codebase that others change without telling: nobody can set the time of the last change
 * of an inode (its ctime), and a name that comes or goes changes that of its directory. Only what the kernel knows is
 * looked at, at the price of a stat each.
 */
export class LookAgain {
  /** All that may have changed; those that are gone meanwhile included. */
  readonly nodes: readonly Node[];
  readonly #tree: Tree;
  readonly #sinceMs: number;
  readonly #stat = new Stat();

  constructor(tree: Tree, sinceMs: number) {
    this.#tree = tree;
    this.#sinceMs = sinceMs - SLACK_MS;
    this.nodes = [...tree.nodes()].filter((node) => node.hasLower);
  }

  /** The paths that must be refreshed because of this node; undefined: it is as it was. */
  changedAt(node: Node): readonly (readonly string[])[] | undefined {
    const layer = node.layers.find((each) => each !== DELTA);
    if (node.removed || layer === undefined) return undefined;
    this.#tree.descriptors.trim();
    return node.isDirectory ? this.#directory(node, layer) : this.#file(node, layer);
  }

  #file(node: Node, layer: number): readonly (readonly string[])[] | undefined {
    const directory = node.parent === undefined ? -1 : this.#tree.descriptors.get(node.parent, layer);
    const found = directory >= 0 && syscalls.statat(directory, node.name, this.#stat) === 0;
    return found && !this.#isRecent() ? undefined : [pathOf(node)];
  }

  #directory(node: Node, layer: number): readonly (readonly string[])[] | undefined {
    const path = pathOf(node);
    const itself = path.length === 0 ? [] : [path];
    const fd = this.#tree.descriptors.get(node, layer);
    if (fd < 0 || syscalls.fstat(fd, this.#stat) < 0) return itself;
    if (!this.#isRecent()) return undefined;
    // Names that are new may have been asked for before they were there, those that are gone may have been listed.
    const names = new Set([...(node.children?.keys() ?? []), ...(node.listing?.names ?? [])]);
    names.delete(""); // a hole in the listing
    readDirectory(fd, (name) => names.add(name));
    return [...itself, ...[...names].map((name) => [...path, name])];
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
