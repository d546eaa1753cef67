import { describe, expect, test } from "vitest";
import { InodeNumbers } from "../../../src/isolation/filesystem/inode-numbers.ts";

const ROOT = 1;

describe("no two files that are there at the same time have one inode number", () => {
  test("when the delta's file system gives the number of a synced file to the next one", () => {
    const numbers = new InodeNumbers();
    const synced = numbers.ofDelta(77);
    numbers.handOver(77, ROOT, "first");
    expect(numbers.ofPath(ROOT, "first")).toBe(synced);
    const next = numbers.ofDelta(77);
    expect(next).not.toBe(synced);
    numbers.handOver(77, ROOT, "second");
    expect([numbers.ofPath(ROOT, "first"), numbers.ofPath(ROOT, "second")]).toEqual([synced, next]);
    expect([synced, next]).not.toContain(numbers.ofDelta(77));
  });

  test("when a file of the codebase was renamed and synced, and another comes to its old name", () => {
    const numbers = new InodeNumbers();
    const number = numbers.ofPath(ROOT, "old");
    numbers.keep(5, number);
    numbers.handOver(5, ROOT, "new");
    expect(numbers.ofPath(ROOT, "new")).toBe(number);
    const other = numbers.ofPath(ROOT, "old");
    expect(other).not.toBe(number);
    numbers.forgetPath(ROOT, "new");
    expect(numbers.ofPath(ROOT, "old")).toBe(other);
  });

  test("and one that is renamed back keeps its number", () => {
    const numbers = new InodeNumbers();
    const number = numbers.ofPath(ROOT, "old");
    numbers.keep(5, number);
    numbers.handOver(5, ROOT, "new");
    numbers.keep(6, number);
    numbers.handOver(6, ROOT, "old");
    expect(numbers.ofPath(ROOT, "old")).toBe(number);
  });
});
