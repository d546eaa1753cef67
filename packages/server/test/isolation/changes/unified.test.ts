import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { withoutHanging } from "../../../../../test/support/eventually.ts";
import { diffLines } from "../../../src/isolation/changes/lines.ts";
import { unifiedDiff } from "../../../src/isolation/changes/unified.ts";

const line = fc.constantFrom("a", "b", "c", "d");
const lines = fc.array(line, { maxLength: 40 });

function rebuild(old: readonly string[], now: readonly string[]): string[] {
  const built: string[] = [];
  let at = 0;
  for (const { oldStart, removed, newStart, added } of diffLines(old, now)) {
    built.push(...old.slice(at, oldStart), ...now.slice(newStart, newStart + added));
    at = oldStart + removed;
  }
  return [...built, ...old.slice(at)];
}

describe("diffLines", () => {
  test("its edits turn the old lines into the new ones", () => {
    fc.assert(
      fc.property(lines, lines, (old, now) => {
        expect(rebuild(old, now)).toEqual(now);
      }),
      { numRuns: 2000 },
    );
  });

  test("texts of a hundred thousand lines without anything in common are not compared one with each", async () => {
    const [old, now] = ["x", "y"].map((letter) => Array.from({ length: 100_000 }, (_, i) => `${letter}${i}`));
    const differences = await withoutHanging(() => diffLines(old!, now!));
    expect(differences).toEqual([{ oldStart: 0, removed: 100_000, newStart: 0, added: 100_000 }]);
  });

  test("beyond the limit the result is longer than need be and still right", () => {
    const old = Array.from({ length: 8000 }, (_, i) => (i % 2 === 0 ? `same ${i}` : `old ${i}`));
    const now = Array.from({ length: 8000 }, (_, i) => (i % 2 === 0 ? `same ${i}` : `new ${i}`));
    expect(rebuild(old, now)).toEqual(now);
  });
});

describe("unifiedDiff", () => {
  test("shows three lines around a difference, counts from one, and joins hunks that touch", () => {
    const old = Array.from({ length: 30 }, (_, i) => `${i + 1}\n`).join("");
    const now = old.replace("5\n", "five\n").replace("9\n", "").replace("27\n", "27\n27b\n");
    expect(unifiedDiff(old, now)).toEqual({
      text:
        "@@ -2,11 +2,10 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n-9\n 10\n 11\n 12\n" +
        "@@ -25,6 +24,7 @@\n 25\n 26\n 27\n+27b\n 28\n 29\n 30\n",
      added: 2,
      removed: 2,
    });
  });

  test("marks a last line without a line feed", () => {
    expect(unifiedDiff("a\nb", "a\nb\n").text).toBe("@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
    expect(unifiedDiff("", "a").text).toBe("@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n");
    expect(unifiedDiff("a\n", "").text).toBe("@@ -1 +0,0 @@\n-a\n");
    expect(unifiedDiff("same", "same").text).toBe("");
  });

  test("patch(1) makes the new text of the old one", () => {
    const directory = mkdtempSync(join(tmpdir(), "agentfense-patch-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const file = join(directory, "file");
    const text = fc
      .tuple(lines, fc.boolean())
      .map(([all, ends]) => all.join("\n") + (ends && all.length > 0 ? "\n" : ""));
    fc.assert(
      fc.property(text, text, (old, now) => {
        fc.pre(old !== now && now !== "");
        writeFileSync(file, old);
        const patch = `--- a/file\n+++ b/file\n${unifiedDiff(old, now).text}`;
        execFileSync("patch", ["-p1", "--quiet", "--fuzz=0", file], { cwd: directory, input: patch });
        expect(readFileSync(file, "utf8")).toBe(now);
      }),
      { numRuns: 100 },
    );
  });
});
