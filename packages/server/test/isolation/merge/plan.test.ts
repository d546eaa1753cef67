import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rounds } from "../../../../../test/support/rounds.ts";
import { type MergeOptions, type MergePlan, planMerge } from "../../../src/isolation/merge/plan.ts";
import { type GitCase, type GitEntry, type GitTree, mergeByGit } from "./git.ts";
import { IN_MEMORY, MemoryTree, type Text } from "./trees.ts";

const line = fc.constantFrom("a\n", "b\n", "c\n", "d\n", "e\n", "\n", "f\r\n");
const text = fc.array(line, { maxLength: 12 }).map((lines) => lines.join(""));
const content = fc.oneof(
  { weight: 8, arbitrary: text },
  { weight: 1, arbitrary: text.map((all) => all.replace(/\n$/, "")) },
  { weight: 1, arbitrary: fc.constantFrom("\0one", "\0two") },
);
const entry: fc.Arbitrary<GitEntry> = fc.oneof(
  { weight: 6, arbitrary: content.map((all) => ({ mode: "100644" as const, content: all })) },
  { weight: 1, arbitrary: content.map((all) => ({ mode: "100755" as const, content: all })) },
  { weight: 1, arbitrary: fc.constantFrom("x", "y", "../x").map((to) => ({ mode: "120000" as const, content: to })) },
);
const path = fc.constantFrom("a", "b", "b/c", "b/d", "b/d/e", "b.c", "f", "g/h", "g/i");

type Edit = readonly [path: string, how: "put" | "remove" | "edit" | "mode", entry: GitEntry, at: number];
const edit: fc.Arbitrary<Edit> = fc.tuple(
  path,
  fc.constantFrom("put", "remove", "edit", "edit", "edit", "mode"),
  entry,
  fc.nat(11),
);

/** A tree has no file where it has a directory: the newer one stays. */
function put(tree: Map<string, GitEntry>, at: string, what: GitEntry): void {
  for (const known of [...tree.keys()]) {
    if (known.startsWith(`${at}/`) || at.startsWith(`${known}/`)) tree.delete(known);
  }
  tree.set(at, what);
}

function edited(base: GitTree, edits: readonly Edit[]): GitTree {
  const tree = new Map(base);
  for (const [at, how, what, index] of edits) {
    const old = tree.get(at);
    if (how === "remove") tree.delete(at);
    else if (how === "put" || old === undefined || old.mode === "120000") put(tree, at, what);
    else if (how === "mode") tree.set(at, { ...old, mode: old.mode === "100755" ? "100644" : "100755" });
    else {
      const lines = old.content.split(/(?<=\n)/);
      lines.splice(index, index % 3, ...what.content.split(/(?<=\n)/).slice(0, 2));
      tree.set(at, { ...old, content: lines.join("") });
    }
  }
  return tree;
}

const base: fc.Arbitrary<GitTree> = fc.array(fc.tuple(path, entry), { maxLength: 7 }).map((all) =>
  edited(
    new Map(),
    all.map(([at, what]) => [at, "put", what, 0]),
  ),
);
const edits = fc.array(edit, { minLength: 1, maxLength: 4 });

const threeTrees: fc.Arbitrary<GitCase> = fc.tuple(base, edits, edits).map(([tree, mine, yours]) => ({
  base: ofTheirOwn(tree),
  ours: ofTheirOwn(edited(tree, mine)),
  theirs: ofTheirOwn(edited(tree, yours)),
}));

/** No line is in two files, so that git finds no renames; it has no way of leaving them out that all its versions know. */
function ofTheirOwn(tree: GitTree): GitTree {
  const marked = (at: string, { mode, content: all }: GitEntry): GitEntry => ({
    mode,
    content: all === "" ? "" : all.replace(/(?=\r?\n)|(?<!\n)$/g, at),
  });
  return new Map([...tree].map(([at, what]) => [at, marked(at, what)]));
}

async function merge(
  from: GitTree,
  ours: GitTree,
  sides: readonly GitTree[],
  options: MergeOptions = {},
): Promise<MergePlan<Text>> {
  const changes = sides.map((tree, index) => ({
    name: `theirs-${index}`,
    changes: new MemoryTree(from).changesTo(tree),
  }));
  return await planMerge({ target: new MemoryTree(ours), sides: changes, contents: IN_MEMORY, options });
}

const sorted = (tree: Iterable<[string, GitEntry]>): [string, GitEntry][] =>
  [...tree].sort(([a], [b]) => (a < b ? -1 : 1));

/** git moves what cannot have its name aside. */
const nameOf = (moved: string): string => moved.replace(/~(ours|theirs)-\d+(_\d+)?$/, "");

describe("a plan of a merge", () => {
  test("is clean where git's is and has its tree, and conflicts on the same paths", async () => {
    const cases = fc.sample(threeTrees, rounds(300));
    let conflicted = 0;
    for (const [index, git] of mergeByGit(cases).entries()) {
      const one = cases[index]!;
      const plan = await merge(one.base, one.ours, [one.theirs]);
      const tree = new MemoryTree(one.ours).after(plan);
      const contested = new Set([...git.conflicts].map(nameOf));
      const isContested = (at: string): boolean =>
        [...contested].some((known) => at === known || at.startsWith(`${known}/`));
      const rest = (whole: GitTree): [string, GitEntry][] =>
        sorted([...whole].filter(([at]) => !isContested(nameOf(at))));
      const shown = { ...one, index, plan };
      expect(new Set(plan.conflicts.map(({ path: at }) => at)), JSON.stringify(shown, showMaps)).toEqual(contested);
      expect(rest(tree), JSON.stringify(shown, showMaps)).toEqual(rest(git.tree));
      if (contested.size > 0) conflicted += 1;
    }
    // Otherwise the cases would show nothing.
    expect(conflicted).toBeGreaterThan(cases.length / 10);
    expect(conflicted).toBeLessThan((cases.length * 9) / 10);
  });

  test("with an unchanged side is what the other made; what nobody touched has no step", async () => {
    await fc.assert(
      fc.asyncProperty(threeTrees, async ({ base: from, ours, theirs }) => {
        const theirsAlone = await merge(from, from, [theirs]);
        expect(theirsAlone.conflicts).toEqual([]);
        expect(sorted(new MemoryTree(from).after(theirsAlone))).toEqual(sorted(theirs));
        expect((await merge(from, ours, [from])).steps).toEqual([]);
        const both = await merge(from, ours, [theirs]);
        const touched = new Set(new MemoryTree(from).changesTo(theirs).map((change) => change.path));
        expect(both.steps.filter((step) => step.sides.length > 0 && !touched.has(step.path))).toEqual([]);
      }),
      { numRuns: rounds(200) },
    );
  });

  test("does not depend on the order of sides that do not meet", async () => {
    await fc.assert(
      fc.asyncProperty(base, edits, edits, edits, async (from, first, second, third) => {
        const sides = [first, second, third].map((all) => edited(from, all));
        const plan = await merge(from, from, sides);
        fc.pre(plan.conflicts.length === 0);
        const tree = sorted(new MemoryTree(from).after(plan));
        for (const order of [
          [1, 0, 2],
          [2, 1, 0],
          [1, 2, 0],
        ]) {
          const again = await merge(
            from,
            from,
            order.map((index) => sides[index]!),
          );
          if (again.conflicts.length > 0) continue; // which lines belong together can depend on it, as with git
          expect(sorted(new MemoryTree(from).after(again))).toEqual(tree);
        }
      }),
      { numRuns: rounds(200) },
    );
  });
});

function showMaps(_: string, value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value) : value instanceof Set ? [...value] : value;
}
