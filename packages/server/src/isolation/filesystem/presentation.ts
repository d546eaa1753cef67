import { type Attributes, syscalls } from "@agentfense/fuse";
import { LEVEL } from "@agentfense/permission";
import type { Node } from "./node.ts";
import type { Tree } from "./tree.ts";

const { FileType } = syscalls;

const SET_ID_BITS = 0o6000;
/** One block, whatever a directory holds: its size must not tell how many hidden entries there are. */
const DIRECTORY_SIZE = 4096;

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * How an entry looks to the sandbox. Nothing that stat shows may depend on what is hidden:
 *
 *   directories   size and blocks are constant; nlink is 1 unless the sandbox made the directory and nothing in it may be
 *                 hidden; times of a codebase directory in which something may be hidden are its birth time, since adding a
 *                 hidden entry moves mtime
 *   files         of the codebase have nlink 1, and one time for all three: a hidden hard link or a reader elsewhere
 *                 would move ctime and atime
 *   modes         agree with the rules; setuid and setgid are never shown
 */
export class Presentation {
  readonly #tree: Tree;
  readonly #owner: Owner | undefined;
  readonly #mountedAt: number;

  constructor(options: { tree: Tree; owner: Owner | undefined; mountedAtMs: number }) {
    this.#tree = options.tree;
    this.#owner = options.owner;
    this.#mountedAt = Math.floor(options.mountedAtMs / 1000);
  }

  /** Writes the attributes of a node whose stat is in the tree's `stat`. */
  show(node: Node, out: Attributes): void {
    const { stat } = this.#tree;
    out.ino = node.ino;
    out.mode = this.mode(node, stat.mode);
    out.uid = this.#owner?.uid ?? stat.uid;
    out.gid = this.#owner?.gid ?? stat.gid;
    out.blksize = stat.blksize;
    out.mtime = stat.mtime;
    out.mtimeNs = stat.mtimeNs;
    if (node.isDirectory) this.#showDirectory(node, out);
    else this.#showFile(node, out);
  }

  /** The mode an entry has for the sandbox. */
  mode(node: Node, diskMode: number): number {
    const mode = diskMode & ~SET_ID_BITS;
    if (node.type === FileType.SYMLINK) return mode;
    const level = this.#tree.levelOf(node);
    if (node.isDirectory) {
      const usable = this.#owner && node.hasCodebase ? mode | (level === LEVEL.write ? 0o700 : 0o500) : mode;
      return level === LEVEL.write ? usable : usable & ~0o222;
    }
    if (level < LEVEL.read) return mode & ~0o777;
    const readable = this.#owner && node.hasCodebase ? mode | (level === LEVEL.write ? 0o600 : 0o400) : mode;
    return level === LEVEL.write ? readable : readable & ~0o222;
  }

  #showDirectory(node: Node, out: Attributes): void {
    const { stat } = this.#tree;
    out.size = DIRECTORY_SIZE;
    out.blocks = DIRECTORY_SIZE / 512;
    const { mayHideBelow } = this.#tree.scopeOf(node);
    out.nlink = node.removed ? 0 : node.layers.length > 1 || node.hasCodebase || mayHideBelow ? 1 : stat.nlink;
    // What was frozen before this mount may have been made under other rules.
    if (!node.isOfMount && mayHideBelow) {
      out.mtime = stat.btime || this.#mountedAt;
      out.mtimeNs = stat.btimeNs;
    }
    if (node.isOfMount) this.#ownTimes(out);
    else this.#oneTime(out);
  }

  #showFile(node: Node, out: Attributes): void {
    const { stat } = this.#tree;
    out.size = stat.size;
    out.blocks = stat.blocks;
    if (node.inDelta || (node.isOfMount && !node.removed)) out.nlink = stat.nlink - this.#tree.hiddenNames(node);
    else out.nlink = node.removed && !node.superseded ? 0 : 1;
    if (node.isOwn) this.#ownTimes(out);
    else this.#oneTime(out);
  }

  #ownTimes(out: Attributes): void {
    const { stat } = this.#tree;
    out.atime = stat.atime;
    out.atimeNs = stat.atimeNs;
    out.ctime = stat.ctime;
    out.ctimeNs = stat.ctimeNs;
  }

  #oneTime(out: Attributes): void {
    out.atime = out.mtime;
    out.atimeNs = out.mtimeNs;
    out.ctime = out.mtime;
    out.ctimeNs = out.mtimeNs;
  }
}
