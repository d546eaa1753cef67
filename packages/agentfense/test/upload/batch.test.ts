import { createHash } from "node:crypto";
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { batchChunks } from "../../src/upload/batch.ts";
import { ContentChanged } from "../../src/upload/content.ts";
import { hashFiles } from "../../src/upload/hash.ts";
import { inMessages, MESSAGE_BYTES, type UploadEntry } from "../../src/upload/manifest.ts";
import { progressLine } from "../../src/upload/progress.ts";
import { walk } from "../../src/upload/walk.ts";
import { makeTree } from "./tree.ts";

type Chunk = ReturnType<typeof batchChunks> extends AsyncGenerator<infer Item> ? Item : never;

async function prepared(tree: Readonly<Record<string, string>>) {
  const top = await makeTree(tree);
  const { entries } = await walk(top, { ignoreFiles: false, includeGit: false });
  const files = entries.filter((entry) => entry.kind === "file");
  const { hashed } = await hashFiles(top, files, () => {});
  return { top, hashed, entries: [...entries.filter((entry) => entry.kind !== "file"), ...hashed] };
}

async function collect(top: string, entries: readonly UploadEntry[], missing: readonly string[]) {
  const chunks: Chunk[] = [];
  const begin = { codebaseId: "cb_1", replaceAll: false };
  for await (const chunk of batchChunks({ top, begin, entries, missing: new Set(missing) }, () => {}))
    chunks.push(chunk);
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
    expect(first).toEqual({ begin: { codebaseId: "cb_1", replaceAll: false } });
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
    await expect(collect(top, entries, ["a"])).rejects.toThrow(ContentChanged);
    await appendFile(join(top, "a"), "more");
    await expect(collect(top, entries, ["a"])).rejects.toThrow("a changed while it was being read; try again");
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

test("progress is a bar, a percentage and sizes", () => {
  expect(progressLine("uploading", 512, 2048)).toBe("uploading ██████░░░░░░░░░░░░░░░░░░  25 %  512 B of 2.0 KiB");
  expect(progressLine("reading", 0, 0)).toContain("100 %");
});
