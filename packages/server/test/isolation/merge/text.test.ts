import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { withoutHanging } from "../../../../../test/support/eventually.ts";
import { rounds } from "../../../../../test/support/rounds.ts";
import { diffLines } from "../../../src/isolation/changes/lines.ts";
import { mergeText } from "../../../src/isolation/merge/text.ts";
import { type GitEntry, mergeByGit } from "./git.ts";

/** Few kinds of lines make many ways to pair them, of which git has chosen one; many make texts as people write them. */
const line = fc.oneof(
  fc.constantFrom("a", "b", "c", "", "}", "\r", "a\r"),
  fc.nat(30).map(String),
  fc.nat(5000).map((n) => `line ${n}`),
);
const some = fc.array(line, { maxLength: 4 });
const change = fc.tuple(fc.nat(), fc.nat(4), some);
type Change = readonly [at: number, removed: number, added: readonly string[]];

function changed(lines: readonly string[], changes: readonly Change[]): string[] {
  const result = [...lines];
  for (const [at, removed, added] of changes) result.splice(at % (result.length + 1), removed, ...added);
  return result;
}

const textOf = (lines: readonly string[], ends: boolean): string =>
  lines.length === 0 ? "" : `${lines.join("\n")}${ends ? "\n" : ""}`;

const three = fc
  .tuple(
    fc.oneof(fc.array(line, { maxLength: 12 }), fc.array(line, { minLength: 20, maxLength: 200 })),
    fc.array(change, { maxLength: 5 }),
    fc.array(change, { maxLength: 5 }),
    fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
  )
  .map(([base, mine, yours, ends]) => ({
    base: textOf(base, ends[0]),
    ours: textOf(changed(base, mine), ends[1]),
    theirs: textOf(changed(base, yours), ends[2]),
  }));

/** A long text of which both sides changed every few lines. */
function manyChanges(mine: number, yours: number): { base: string; ours: string; theirs: string } {
  const lines = Array.from({ length: 12_000 }, (_, i) => `${i}`);
  const edited = (every: number): string =>
    lines.map((one, i) => (i % every === 0 ? `${one} of ${every}\n` : `${one}\n`)).join("");
  return { base: `${lines.join("\n")}\n`, ours: edited(mine), theirs: edited(yours) };
}

describe("mergeText", () => {
  test("gives the bytes that git merge gives, its markers too, and has conflicts where it has some", () => {
    const cases = [...fc.sample(three, rounds(500)), manyChanges(5, 7), manyChanges(3, 11)];
    const treeOf = (side: "base" | "ours" | "theirs"): Map<string, GitEntry> =>
      new Map(cases.map((texts, index) => [`f${index}`, { mode: "100644", content: texts[side] }]));
    const [git] = mergeByGit([{ base: treeOf("base"), ours: treeOf("ours"), theirs: treeOf("theirs") }]);
    let conflicted = 0;
    for (const [index, { base, ours, theirs }] of cases.entries()) {
      if (ours === theirs || base === ours || base === theirs) continue;
      const { text, hunks } = mergeText(base, ours, theirs, { labels: { ours: "ours-0", theirs: "theirs-0" } });
      const shown = JSON.stringify({ base, ours, theirs }).slice(0, 5000);
      expect(text, shown).toBe(git!.tree.get(`f${index}`)!.content);
      expect(hunks.length > 0, shown).toBe(git!.conflicts.has(`f${index}`));
      if (hunks.length > 0) conflicted += 1;
    }
    expect(conflicted).toBeGreaterThan(cases.length / 20);
  });

  test("gives what git merge-file gives, with its algorithm, and its way of settling conflicts", () => {
    const directory = mkdtempSync(join(tmpdir(), "agentfense-merge-file-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const byGit = (texts: { base: string; ours: string; theirs: string }, ...more: string[]): string => {
      for (const [name, text] of Object.entries(texts)) writeFileSync(join(directory, name), text, "latin1");
      const args = ["merge-file", "-p", "-q", ...more, "ours", "base", "theirs"];
      return spawnSync("git", args, { cwd: directory, encoding: "latin1" }).stdout;
    };
    const options = { diff: diffLines, joinsAcrossBlanks: true } as const;
    for (const texts of fc.sample(three, rounds(20))) {
      const { base, ours, theirs } = texts;
      expect(mergeText(base, ours, theirs, options).text, JSON.stringify(texts)).toBe(byGit(texts));
      for (const favour of ["ours", "theirs", "union"] as const) {
        const merged = mergeText(base, ours, theirs, { ...options, favour });
        expect(merged.text, JSON.stringify({ favour, ...texts })).toBe(byGit(texts, `--${favour}`));
      }
    }
  });

  test("gives git's result for long texts with many changes, where its algorithms take short cuts", () => {
    const directory = mkdtempSync(join(tmpdir(), "agentfense-merge-file-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    for (const repeats of [7, 40, 100_000]) {
      const lines = Array.from({ length: 4000 }, (_, i) => `${(i * 7919) % repeats}`);
      const edit = (every: number): string =>
        lines
          .map((text, i) => (i % every === 0 ? `${text} of ${every}\n` : i % (every + 4) === 0 ? "" : `${text}\n`))
          .join("");
      const texts = { base: `${lines.join("\n")}\n`, ours: edit(5), theirs: edit(9) };
      for (const [name, text] of Object.entries(texts)) writeFileSync(join(directory, name), text);
      const { stdout } = spawnSync("git", ["merge-file", "-p", "-q", "ours", "base", "theirs"], {
        cwd: directory,
        encoding: "latin1",
      });
      const merged = mergeText(texts.base, texts.ours, texts.theirs, { diff: diffLines, joinsAcrossBlanks: true });
      expect(merged.text === stdout, `${repeats} different lines`).toBe(true);
    }
  });

  test("tells of each conflict which lines they are, on both sides and in the base", () => {
    const merged = mergeText("1\n2\n3\n4\n5\n6\n7\n", "1\ntwo\n3\n4\n5\n6\nseven\n", "0\n1\nTWO\n3\n4\n5\n6\n7\n");
    expect(merged.hunks).toEqual([
      { base: { start: 1, count: 1 }, ours: { start: 1, count: 1 }, theirs: { start: 2, count: 1 } },
    ]);
    expect(merged.text).toBe("0\n1\n<<<<<<< ours\ntwo\n=======\nTWO\n>>>>>>> theirs\n3\n4\n5\n6\nseven\n");
  });

  test("BR-03 texts made to be slow to compare end, in one conflict at worst", async () => {
    const many = 60_000;
    const rows = {
      "every line different": (side: string) => Array.from({ length: many }, (_, i) => `${side}${i}\n`).join(""),
      "one line, again and again": (side: string) => "x\n".repeat(many + side.length),
      "few lines in another order": (side: string) =>
        Array.from({ length: many }, (_, i) => `${(i * (side.charCodeAt(0) | 1)) % 61}\n`).join(""),
      "a line of four megabytes": (side: string) => `${side.repeat(1 << 21)}\n`,
      "rare lines between frequent ones": (side: string) =>
        Array.from({ length: many }, (_, i) => (i % 2 === 0 ? "\n" : `${(i * side.length * 7) % 3000}\n`)).join(""),
    };
    for (const [name, make] of Object.entries(rows)) {
      const merged = await withoutHanging(() => mergeText(make("base"), make("a"), make("theirs")));
      expect(merged.text.length, name).toBeGreaterThan(0);
    }
  });
});

test("diffLines pairs the lines that git diff pairs", () => {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-diff-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  for (const { ours, theirs } of fc.sample(three, rounds(20))) {
    writeFileSync(join(directory, "a"), ours);
    writeFileSync(join(directory, "b"), theirs);
    const args = ["diff", "--no-index", "--no-indent-heuristic", "-U0", "--text", "a", "b"];
    const { stdout } = spawnSync("git", args, { cwd: directory, encoding: "latin1" });
    const heads = stdout.match(/^@@ .* @@/gm) ?? [];
    const lines = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
    const range = (start: number, count: number): string =>
      count === 1 ? `${start + 1}` : `${count === 0 ? start : start + 1},${count}`;
    expect(
      diffLines(lines(ours), lines(theirs)).map(
        ({ oldStart, removed, newStart, added }) => `@@ -${range(oldStart, removed)} +${range(newStart, added)} @@`,
      ),
    ).toEqual(heads.map((head) => head.replace(/ @@.*$/, " @@")));
  }
});
