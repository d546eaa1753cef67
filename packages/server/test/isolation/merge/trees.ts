import type { Contents, Entry, MergePlan, MergeTarget, SideChange } from "../../../src/isolation/merge/plan.ts";
import type { GitTree } from "./git.ts";

/** The content of a file in memory. */
export interface Text {
  readonly text: string;
}

export const IN_MEMORY: Contents<Text> = {
  size: ({ text }) => text.length,
  same: async (a, b) => a.text === b.text,
  read: async ({ text }) => text,
};

/** A tree as git knows it: files and links, and the directories that they need. */
export class MemoryTree implements MergeTarget<Text> {
  readonly name = "ours-0";
  readonly #tree: GitTree;
  readonly #entries = new Map<string, Entry<Text>>();
  readonly #names = new Map<string, Set<string>>();

  constructor(tree: GitTree) {
    this.#tree = tree;
    for (const [path, { mode, content }] of tree) {
      this.#entries.set(path, entryOf(mode, content));
      const names = path.split("/");
      for (let depth = names.length - 1; depth >= 0; depth--) {
        const above = names.slice(0, depth).join("/");
        if (above !== "") this.#entries.set(above, { kind: "directory", mode: 0o755 });
        const known = this.#names.get(above);
        if (known === undefined) this.#names.set(above, new Set([names[depth]!]));
        else known.add(names[depth]!);
      }
    }
  }

  entry(path: string): Entry<Text> | undefined {
    return this.#entries.get(path);
  }

  names(path: string): readonly string[] {
    return [...(this.#names.get(path) ?? [])];
  }

  /** What a side that started from this tree changed. */
  changesTo(now: GitTree): SideChange<Text>[] {
    const after = new MemoryTree(now);
    const paths = new Set([...this.#entries.keys(), ...after.#entries.keys()]);
    return [...paths].flatMap((path) => {
      const [base, then] = [this.entry(path), after.entry(path)];
      return JSON.stringify(base) === JSON.stringify(then) ? [] : [{ path, base, now: then }];
    });
  }

  /** The tree after the steps of a plan. */
  after({ steps }: MergePlan<Text>): GitTree {
    const tree = new Map(this.#tree);
    for (const step of steps) {
      if (step.kind === "remove") tree.delete(step.path);
      if (step.kind === "link") tree.set(step.path, { mode: "120000", content: step.target });
      if (step.kind !== "file") continue;
      const content = typeof step.content === "string" ? step.content : step.content.text;
      tree.set(step.path, { mode: step.mode & 0o100 ? "100755" : "100644", content });
    }
    return tree;
  }
}

function entryOf(mode: string, content: string): Entry<Text> {
  if (mode === "120000") return { kind: "symlink", target: content };
  return { kind: "file", mode: mode === "100755" ? 0o755 : 0o644, content: { text: content } };
}
