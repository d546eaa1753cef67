import { syscalls } from "@agentfense/fuse";
import type { Context } from "./context.ts";
import type { Delta } from "./delta.ts";
import { LookAgain } from "./look-again.ts";
import type { Node } from "./node.ts";
import { Refresh } from "./refresh.ts";
import { Settling } from "./settling.ts";
import { whiteoutFor } from "./whiteouts.ts";

const { FileType, Open, Stat } = syscalls;

/** Changes of a live workspace that do not come through its mount: the codebase's, and those of the delta by its owner. */
export class Upkeep {
  readonly #context: Context;
  #lookedAtMs = Date.now();

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
    const parent = names.length === 1 ? "." : names.slice(0, -1).join("/");
    const directory = syscalls.openBeneath(this.delta.tree, parent, Open.PATH | Open.DIRECTORY);
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
    const top = this.#known(names);
    const nodes = top === undefined ? [] : [top];
    for (const node of nodes) nodes.push(...(node.children?.values() ?? []));
    return nodes.some((node) => node.writers > 0);
  }

  /** Whiteouts of a directory were lifted. */
  forgetWhiteouts(names: readonly string[]): void {
    const directory = this.#known(names);
    if (directory !== undefined) directory.whiteouts = undefined;
  }

  /** Counts anew what the delta holds, after somebody took much out of it. */
  measureDelta(): void {
    const { writing, tree } = this.#context;
    if (writing?.quota === undefined) return;
    writing.quota.measure(writing.delta.tree);
    for (const node of tree.nodes()) tree.openings.chargeAgain(node);
  }

  #known(names: readonly string[]): Node | undefined {
    let node: Node | undefined = this.#context.tree.root;
    for (const name of names) node = node?.children?.get(name);
    return node;
  }
}
