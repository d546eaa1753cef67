import { createHash } from "node:crypto";
import { appendFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeTree } from "../../../../test/support/upload-tree.ts";
import { type BatchChunk, batchChunks, inMessages, MESSAGE_BYTES } from "../../src/client/messages/codebase.ts";
import { UploadError } from "../../src/errors.ts";
import { hashFiles } from "../../src/upload/hash.ts";
import type { UploadEntry } from "../../src/upload/select.ts";
import { batchEntries } from "../../src/upload/upload.ts";
import { walk } from "../../src/upload/walk.ts";

async function prepared(tree: Readonly<Record<string, string>>) {
  const top = await makeTree(tree);
  const { entries } = await walk(top, { ignoreFiles: false, includeGit: false });
  const files = entries.filter((entry) => entry.kind === "file");
  const { hashed } = await hashFiles(top, files);
  return { top, hashed, entries: [...entries.filter((entry) => entry.kind !== "file"), ...hashed] };
}

async function collect(top: string, entries: readonly UploadEntry[], missing: readonly string[]) {
  const chunks: BatchChunk[] = [];
  const begin = { codebaseId: "cb_1", replaceAll: false };
  for await (const chunk of batchChunks(begin, batchEntries(top, entries, new Set(missing)))) chunks.push(chunk);
  return chunks;
}

describe("a batch", () => {
  test("hashes are those of the content", async () => {
    const { hashed } = await prepared({ a: "hello" });
    expect(hashed[0]!.sha256).toBe(createHash("sha256").update("hello").digest("hex"));
  });

  test("sends content only where it is missing, and names everything", async () => {
    const { top, entries } = await prepared({ a: "one", b: "two", "d/": "", empty: "", l: "-> a" });
    const [first, ...rest] = await collect(top, entries, ["b", "empty"]);
    expect(first).toEqual({ begin: { codebaseId: "cb_1", replaceAll: false, announcesEnd: true } });
    expect(rest.map(({ end = false }) => end)).toEqual(rest.map((_, index) => index === rest.length - 1));
    const items = rest.flatMap((chunk) => chunk.items ?? []);
    expect(
      items.map((item) => [item.entry?.path, item.data === undefined ? undefined : String(Buffer.from(item.data))]),
    ).toEqual([
      ["d", undefined],
      ["l", undefined],
      ["a", undefined],
      ["b", "two"],
      ["empty", undefined],
    ]);
  });

  test("cuts large files into messages that fit", async () => {
    const content = "x".repeat(3_000_000);
    const { top, entries } = await prepared({ large: content, small: "y" });
    const chunks = await collect(top, entries, ["large", "small"]);
    const sizes = chunks.map(({ items = [] }) => items.reduce((sum, { data }) => sum + (data?.length ?? 0), 0));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MESSAGE_BYTES);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(3_000_001);
    const named = chunks.flatMap(({ items = [] }) => items).filter(({ entry }) => entry !== undefined);
    expect(named.map(({ entry }) => entry?.path)).toEqual(["large", "small"]);
  });

  test("notices a file that changed after it was hashed", async () => {
    const { top, entries } = await prepared({ a: "one" });
    await writeFile(join(top, "a"), "two");
    await expect(collect(top, entries, ["a"])).rejects.toThrow(UploadError);
    await appendFile(join(top, "a"), "more");
    await expect(collect(top, entries, ["a"])).rejects.toThrow("a changed while it was being read; try again");
  });

  test("follows no link that took the place of a file after it was hashed", async () => {
    const elsewhere = await makeTree({ secret: "one" });
    const { top, entries } = await prepared({ a: "one", large: "x".repeat(100_000) });
    for (const name of ["a", "large"]) {
      await rm(join(top, name));
      await symlink(join(elsewhere, "secret"), join(top, name));
      await expect(collect(top, entries, [name])).rejects.toThrow(`${name} changed while it was being read`);
    }
  });
});

test("a manifest of many files is cut into messages that fit", () => {
  const sha256 = "0".repeat(64);
  const files = Array.from({ length: 10_000 }, (_, at) => ({
    kind: "file" as const,
    path: `${"d".repeat(200)}/${at}`,
    mode: 0o644,
    size: 1,
    sha256,
  }));
  const groups = [...inMessages(files)];
  expect(groups.flat()).toEqual(files);
  expect(groups.length).toBeGreaterThan(2);
});
