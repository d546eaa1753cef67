import { syscalls } from "@agentfense/fuse";
import type { Context } from "./context.ts";
import { type Delta, openDirectoryAt } from "./delta.ts";
import { LookAgain } from "./look-again.ts";
import type { Node } from "./node.ts";
import { Refresh } from "./refresh.ts";
import { Settling } from "./settling.ts";
import { turn } from "./walks.ts";
import { whiteoutFor } from "./whiteouts.ts";

const { FileType, Stat } = syscalls;

/** Changes of a live workspace that do not come through its mount: the codebase's, and those of the delta by its owner. */
export class Upkeep {
  readonly #context: Context;
  #lookedAtMs = Date.now();
  #leading: { readonly turn: number; readonly nodes: ReadonlySet<Node> } = { turn: -1, nodes: new Set() };

  constructor(context: Context) {
    this.#context = context;
  }

  /** For codebases that change without a word: finds what may have since the last time, or since the mount. */
  lookAgain(): LookAgain {
    const sinceMs = this.#lookedAtMs;
    this.#lookedAtMs = Date.now();
    return new LookAgain(this.#context.tree, sinceMs);
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
