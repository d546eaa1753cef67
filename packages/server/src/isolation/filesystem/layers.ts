import { Errno, syscalls } from "@agentfense/fuse";
import type { Delta } from "./delta.ts";
import type { DescriptorCache } from "./descriptor-cache.ts";
import { walkDirectory } from "./directory-reader.ts";
import type { Node, Stack } from "./node.ts";
import { turn, type Walk } from "./walks.ts";
import { deletedName, hasWhiteout, isReserved, OPAQUE_MARKER } from "./whiteouts.ts";

const { FileType, Open } = syscalls;

/** Receives each name of a merged directory: its d_type, the layer it shows from, its inode there. True: that is enough. */
type EachName = (name: string, type: number, layer: number, inode: number) => unknown;

/** The union of the layers on disk, rules aside: which names there are in a directory, and in which layers. */
export class Layers {
  readonly delta: Delta | undefined;
  readonly descriptors: DescriptorCache;
  readonly stack: Stack;
  /** The result of the last resolve(): attributes and layers of what was found. */
  readonly stat = new syscalls.Stat();
  foundLayers: readonly number[];
  /** Its inode in the topmost codebase layer, as Node.lowerInode has it. */
  foundLower = 0;

  readonly #otherStat = new syscalls.Stat();
  readonly #single: (readonly number[])[] = [];

  constructor(delta: Delta | undefined, descriptors: DescriptorCache, stack: Stack) {
    this.delta = delta;
    this.descriptors = descriptors;
    this.stack = stack;
    this.foundLayers = this.single(stack.top);
  }

  /** What is made of one layer alone. */
  single(layer: number): readonly number[] {
    this.#single[layer] ??= [layer];
    return this.#single[layer];
  }

  /** Looks a name up in the layers, rules aside. 0 with `stat` and `foundLayers` filled in, or a negated errno. */
  resolve(parent: Node, name: string): number {
    const layers = parent.layers;
    for (let i = 0; i < layers.length; i++) {
      const layer = layers[i]!;
      const own = this.stack.isOwn(layer);
      if (own && isReserved(name)) continue;
      const directory = this.descriptors.get(parent, layer);
      if (directory < 0) return directory;
      const code = syscalls.statat(directory, name, this.stat);
      if (code === 0) return this.#found(parent, name, i);
      if (-code !== Errno.ENOENT) return code;
      if (own && i + 1 < layers.length && this.#isDeleted(parent, layer, directory, name)) return -Errno.ENOENT;
    }
    return -Errno.ENOENT;
  }

  /** True if one of the layers beneath the delta has this name, shown or not: deleting it then needs a whiteout. */
  lowerHolds(parent: Node, name: string): boolean {
    return parent.layers.some((layer) => {
      if (layer === this.stack.top) return false;
      const directory = this.descriptors.get(parent, layer);
      return directory >= 0 && syscalls.statat(directory, name, this.#otherStat) === 0;
    });
  }

  // The whiteouts are known of directories that were listed or made here; of others each is looked for, for there can be many.
  #isDeleted(parent: Node, layer: number, directory: number, name: string): boolean {
    const known = layer === this.stack.top ? parent.whiteouts : undefined;
    return known?.has(name) ?? hasWhiteout(directory, name);
  }

  /** Every name of a directory, rules aside, each once, until `each` returns true. The callback must not read directories itself. */
  *walkNames(directory: Node, each: EachName): Walk<number> {
    const began = turn.number;
    const { layers } = directory;
    const seen = layers.length > 1 ? new Set<string>() : undefined;
    let enough = false;
    for (const layer of layers) {
      const fd = this.descriptors.get(directory, layer);
      if (fd < 0) return fd;
      const own = this.stack.isOwn(layer);
      const whiteouts = new Set<string>();
      const code = yield* walkDirectory(fd, (name, type, inode) => {
        if (own && isReserved(name)) {
          const held = this.descriptors.get(directory, layer);
          const deleted = held < 0 ? undefined : deletedName(held, name);
          if (deleted !== undefined) whiteouts.add(deleted);
          return false;
        }
        if (seen?.has(name)) return false;
        seen?.add(name);
        enough = each(name, type, layer, inode) === true;
        return enough;
      });
      if (code < 0) return code;
      if (enough) return 0;
      // After a pause others may have been laid or lifted, or the delta may be another.
      if (layer === this.stack.top && turn.number === began) directory.whiteouts = whiteouts;
      for (const name of whiteouts) seen?.add(name);
    }
    return 0;
  }

  #found(parent: Node, name: string, index: number): number {
    const layer = parent.layers[index]!;
    const { type } = this.stat;
    // Device nodes are refused to the sandbox, those of the codebase included.
    if (type === FileType.CHARACTER || type === FileType.BLOCK) return -Errno.ENOENT;
    this.foundLower = this.stack.isOwn(layer) ? 0 : this.stat.ino;
    const mayMerge = type === FileType.DIRECTORY && index + 1 < parent.layers.length;
    this.foundLayers = mayMerge ? this.#mergedLayers(parent, name, index) : this.single(layer);
    return 0;
  }

  #mergedLayers(parent: Node, name: string, index: number): readonly number[] {
    const top = parent.layers[index]!;
    const layers = [top];
    let last = top;
    for (const layer of parent.layers.slice(index + 1)) {
      const own = this.stack.isOwn(layer);
      if (own && isReserved(name)) continue;
      const directory = this.descriptors.get(parent, layer);
      if (directory < 0) continue;
      if (syscalls.statat(directory, name, this.#otherStat) !== 0) {
        if (own && hasWhiteout(directory, name)) break;
        continue;
      }
      if (this.#otherStat.type !== FileType.DIRECTORY) break;
      const inode = this.#otherStat.ino;
      if (this.stack.isOwn(last) && this.#isOpaque(parent, last, name)) break;
      if (!own && this.foundLower === 0) this.foundLower = inode;
      layers.push(layer);
      last = layer;
    }
    return layers.length > 1 ? layers : this.single(top);
  }

  #isOpaque(parent: Node, layer: number, name: string): boolean {
    const fd = syscalls.openat(this.descriptors.get(parent, layer), name, Open.PATH | Open.DIRECTORY);
    if (fd < 0) return false;
    const opaque = syscalls.statat(fd, OPAQUE_MARKER, this.#otherStat) === 0;
    syscalls.close(fd);
    return opaque;
  }
}
