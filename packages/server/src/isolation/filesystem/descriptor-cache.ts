import { Errno, syscalls } from "@agentfense/fuse";
import type { Node } from "./node.ts";

const { Open } = syscalls;

/** Ancestors of a directory that are kept open on the way to it. */
const KEPT_ON_THE_WAY = 32;

/** Opened for reading, so that listing needs no second descriptor; as a mere handle where reading is not allowed. */
function openDirectory(parent: number, name: string): number {
  const fd = syscalls.openat(parent, name, Open.RDONLY | Open.DIRECTORY);
  return -fd === Errno.EACCES ? syscalls.openat(parent, name, Open.PATH | Open.DIRECTORY) : fd;
}

/**
 * Keeps directories open, so that names are resolved from descriptors and most operations cost one system call. One
 * cache serves all mounts of a thread. Descriptors are closed only in trim(), between requests: within a request every
 * descriptor stays good.
 */
export class DescriptorCache {
  readonly #capacity: number;
  /** Nodes with open descriptors, oldest first. */
  readonly #nodes = new Set<Node>();
  #open = 0;

  /** About so many descriptors are left after trim(): what was used since the last time is spared once. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** The directory's descriptor in a layer, or a negated errno. */
  get(node: Node, layer: number): number {
    const known = node.descriptors?.[layer];
    if (known !== undefined && known >= 0) {
      node.recentlyUsed = true;
      return known;
    }
    // A deep tree is opened from the nearest open ancestor downwards, without recursion: paths can be 20,000 deep. Only the
    // last ones stay open, so that the depth costs no descriptors.
    const missing: Node[] = [];
    let base = node;
    while ((base.descriptors?.[layer] ?? -1) < 0) {
      missing.push(base);
      if (base.parent === undefined) return -Errno.ENOENT;
      base = base.parent;
    }
    let fd = base.descriptors![layer]!;
    let isPassing = false;
    for (let i = missing.length - 1; i >= 0; i--) {
      const next = missing[i]!;
      const above = fd;
      fd = openDirectory(above, next.name);
      if (isPassing) syscalls.close(above);
      if (fd < 0) return fd;
      isPassing = i >= KEPT_ON_THE_WAY;
      if (!isPassing) this.put(next, layer, fd);
    }
    return fd;
  }

  put(node: Node, layer: number, fd: number): void {
    if (node.descriptors === undefined) {
      node.descriptors = [];
      this.#nodes.add(node);
    }
    while (node.descriptors.length <= layer) node.descriptors.push(-1);
    node.descriptors[layer] = fd;
    this.#open += 1;
    node.recentlyUsed = true;
  }

  /** Closes what has not been used for longest, once there is too much. */
  trim(): void {
    if (this.#open <= this.#capacity) return;
    let turns = this.#nodes.size;
    for (const node of this.#nodes) {
      if (this.#open <= this.#capacity / 2 || turns-- === 0) break;
      const isRoot = node.parent === undefined && !node.removed;
      if (isRoot) continue;
      if (node.recentlyUsed) {
        // A second chance, at the back of the queue.
        node.recentlyUsed = false;
        this.#nodes.delete(node);
        this.#nodes.add(node);
      } else this.drop(node);
    }
  }

  /** Closes a directory's descriptors now: it is gone, or is another directory than before. */
  drop(node: Node): void {
    if (node.descriptors === undefined) return;
    for (const fd of node.descriptors) {
      if (fd < 0) continue;
      syscalls.close(fd);
      this.#open -= 1;
    }
    node.descriptors = undefined;
    this.#nodes.delete(node);
  }
}
