import { createHash } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { BatchPiece } from "../../../src/runtime/codebases/api.ts";
import { ALICE, arrange, refusal, textOf } from "./fixture.ts";
import { chunks, file, type Piece, pieces } from "./opening.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const announced = (path: string, text: string, mode = 0) =>
  file(path, { mode, size: Buffer.byteLength(text), sha256: sha256(text) });

describe("a batch", () => {
  test("makes one version of files, directories, links and absences", async () => {
    const { codebases, id, tree, audited } = await arrange();
    await codebases.upload(ALICE, id, "old", chunks("old"));
    const result = await codebases.batch(
      ALICE,
      id,
      pieces(
        { entry: announced("src/a.ts", "hello", 0o755), data: Buffer.from("hel") },
        { data: Buffer.from("lo") },
        { entry: file("empty") },
        { entry: { kind: "directory", path: "bare", mode: 0o750 } },
        { entry: { kind: "symlink", path: "bin/l", target: "../src/a.ts" } },
        { entry: { kind: "absent", path: "old" } },
        { entry: { kind: "absent", path: "never/was" } },
      ),
      { message: "first" },
    );
    expect(result).toEqual({ version: 2, filesChanged: 4, bytesReceived: 5 });
    expect(tree()).toEqual({
      bare: "750/",
      bin: "755/",
      "bin/l": "-> ../src/a.ts",
      empty: "644 ",
      src: "755/",
      "src/a.ts": "755 hello",
    });
    const { version, changes } = await codebases.getVersion(ALICE, id, 2);
    expect(version).toMatchObject({ origin: "upload", message: "first", filesChanged: 4, size: 5, fileCount: 3 });
    expect(changes.map(({ kind, path, size }) => `${kind} ${path} ${size}`)).toEqual([
      "added bare 0",
      "added bin 0",
      "added bin/l 0",
      "added empty 0",
      "deleted old 3",
      "added src 0",
      "added src/a.ts 5",
    ]);
    expect(audited.at(-1)).toMatchObject({ type: "files_uploaded", data: { version: 2, files: 4, bytes: 5 } });
  });

  test("asks for the content the server lacks, and takes the rest from where it is", async () => {
    const { codebases, id, tree, root } = await arrange();
    await codebases.batch(ALICE, id, pieces(["a", "one"], ["b", "two"]));
    const entries = [
      announced("a", "one"),
      announced("copy/of-b", "two", 0o600),
      announced("b", "two", 0o755),
      announced("new", "three"),
      announced("empty", ""),
    ];
    expect(await codebases.compare(ALICE, id, entries)).toEqual(["new"]);
    const without = codebases.batch(ALICE, id, pieces(...entries.map((entry) => ({ entry }))));
    expect(await refusal(without)).toBe('CONTENT_MISSING: the server does not have the content of "new"');
    expect(await codebases.get(ALICE, id)).toMatchObject({ version: 1 });
    const inode = statSync(join(root, "codebases", id, "tree/a")).ino;
    const result = await codebases.batch(
      ALICE,
      id,
      pieces(
        ...entries.map(
          (entry): BatchPiece => (entry.path === "new" ? { entry, data: Buffer.from("three") } : { entry }),
        ),
      ),
    );
    expect(result).toEqual({ version: 2, filesChanged: 4, bytesReceived: 5 });
    expect(tree()).toEqual({
      a: "644 one",
      b: "755 two",
      copy: "755/",
      "copy/of-b": "600 two",
      empty: "644 ",
      new: "644 three",
    });
    expect(statSync(join(root, "codebases", id, "tree/a")).ino).toBe(inode);
    const many = Array.from({ length: 30 }, (_, n) => ({ entry: announced(`m${n + 10}`, `missing ${n}`) }));
    expect(await refusal(codebases.batch(ALICE, id, pieces(...many)))).toMatch(/"m10".*"m29" and 10 more$/);
  });

  test("that changes nothing makes no version", async () => {
    const { codebases, id } = await arrange();
    await codebases.batch(ALICE, id, pieces(["a", "one"], ["d/b", "two"]));
    const again = pieces({ entry: announced("a", "one") }, ["d/b", "two"], { entry: { kind: "absent", path: "c" } });
    expect(await codebases.batch(ALICE, id, again)).toEqual({ version: 1, filesChanged: 0, bytesReceived: 3 });
    expect(await codebases.batch(ALICE, id, pieces())).toEqual({ version: 1, filesChanged: 0, bytesReceived: 0 });
  });

  test("can replace everything", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.batch(ALICE, id, pieces(["a/x", "1"], ["a/y", "2"], ["b", "3"], ["c/d/e", "4"]));
    const entries = pieces({ entry: announced("a/x", "1") }, ["b/now/a/directory", "5"]);
    const result = await codebases.batch(ALICE, id, entries, { replaceAll: true });
    expect(result).toEqual({ version: 2, filesChanged: 4, bytesReceived: 1 });
    expect(tree()).toEqual({
      a: "755/",
      "a/x": "644 1",
      b: "755/",
      "b/now": "755/",
      "b/now/a": "755/",
      "b/now/a/directory": "644 5",
    });
    await codebases.batch(ALICE, id, pieces(), { replaceAll: true });
    expect(tree()).toEqual({});
    expect(await codebases.get(ALICE, id)).toMatchObject({ size: 0, fileCount: 0, version: 3 });
  });

  test("turns files, directories and links into one another", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.batch(ALICE, id, pieces(["f", "f"], ["d/x/y", "1"], ["d/z", "2"], ["g", "g"], ["h/i", "i"]));
    await codebases.link(ALICE, id, "l", "f");
    await codebases.link(ALICE, id, "m", "f");
    await codebases.batch(
      ALICE,
      id,
      pieces(
        ["f/now/dir", "a"],
        { entry: { kind: "directory", path: "f", mode: 0o711 } },
        ["d", "file"],
        { entry: { kind: "symlink", path: "g", target: "d" } },
        { entry: { kind: "directory", path: "l", mode: 0 } },
        ["m", "was a link"],
        { entry: { kind: "symlink", path: "h", target: "g" } },
      ),
    );
    expect(tree()).toEqual({
      d: "644 file",
      f: "711/",
      "f/now": "755/",
      "f/now/dir": "644 a",
      g: "-> d",
      h: "-> g",
      l: "755/",
      m: "644 was a link",
    });
    await codebases.rollback(ALICE, id, 3);
    expect(tree()).toEqual({
      d: "755/",
      "d/x": "755/",
      "d/x/y": "644 1",
      "d/z": "644 2",
      f: "644 f",
      g: "644 g",
      h: "755/",
      "h/i": "644 i",
      l: "-> f",
      m: "-> f",
    });
    await codebases.rollback(ALICE, id, 4);
    expect(await textOf(codebases, id, "f/now/dir")).toBe("a");
    expect(await codebases.get(ALICE, id)).toMatchObject({ fileCount: 5, version: 6 });
  });

  test("is refused as a whole", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.batch(ALICE, id, pieces(["f", "f"], ["d/x", "x"]));
    const before = tree();
    const batch = (...given: Piece[]) => refusal(codebases.batch(ALICE, id, pieces(["new", "n"], ...given)));
    expect(await batch(["new", "again"])).toBe('INVALID_ARGUMENT: "new" is named twice');
    expect(await batch(["/new", "again"])).toBe('INVALID_ARGUMENT: "new" is named twice');
    expect(await batch(["f/x", "below a file"])).toMatch(/^FILE_WRONG_KIND: "f\/x" cannot be below "f"/);
    expect(await batch(["new/x", "below a new file"])).toMatch(/^INVALID_ARGUMENT: "new\/x" cannot be below "new"/);
    expect(await batch({ entry: { kind: "absent", path: "d" } }, ["d/y", "y"])).toMatch(/^INVALID_ARGUMENT/);
    expect(await batch({ entry: file("x", { size: 3 }) })).toBe(
      'INVALID_ARGUMENT: "x" has neither content nor a checksum',
    );
    expect(await batch({ entry: file("x", { size: 3 }), data: Buffer.from("four") })).toMatch(/^UPLOAD_MISMATCH/);
    expect(await batch({ entry: announced("x", "abc"), data: Buffer.from("abd") })).toMatch(/^UPLOAD_MISMATCH/);
    expect(await batch({ entry: file("x", { size: 9, sha256: sha256("f") }) })).toMatch(/^UPLOAD_MISMATCH/);
    expect(await batch({ entry: { kind: "directory", path: "x", mode: 0 }, data: Buffer.from("?") })).toMatch(
      /^INVALID/,
    );
    expect(await batch(["../x", "y"])).toMatch(/^INVALID_ARGUMENT: invalid path/);
    expect(await refusal(codebases.batch(ALICE, id, pieces({ data: Buffer.from("?") })))).toMatch(
      /^INVALID_ARGUMENT: data/,
    );
    expect(await refusal(codebases.batch(ALICE, id, pieces(), { message: "x".repeat(5000) }))).toMatch(
      /^INVALID_ARGUMENT/,
    );
    expect(tree()).toEqual(before);
  });

  test("fails as its stream fails", async () => {
    const { codebases, id, root } = await arrange();
    const broken = async function* () {
      yield* pieces(["a", "1"]);
      throw new TypeError("the client went away");
    };
    await expect(codebases.batch(ALICE, id, broken())).rejects.toThrow(new TypeError("the client went away"));
    expect(readdirSync(join(root, "codebases", id, "staging"))).toEqual([]);
  });

  test("is refused when it was built on another version", async () => {
    const { codebases, id } = await arrange();
    await codebases.batch(ALICE, id, pieces(["a", "1"]), { baseVersion: 0 });
    await codebases.batch(ALICE, id, pieces(["a", "2"]), { baseVersion: 1 });
    const late = codebases.batch(ALICE, id, pieces(["a", "3"]), { baseVersion: 1 });
    expect(await refusal(late)).toBe("VERSION_CONFLICT: the codebase is at version 2, not 1");
    const slow = async function* () {
      yield* pieces(["a", "4"]);
      await codebases.upload(ALICE, id, "b", chunks("meanwhile"));
    };
    expect(await refusal(codebases.batch(ALICE, id, slow(), { baseVersion: 2 }))).toMatch(/^VERSION_CONFLICT/);
    expect(await textOf(codebases, id, "a")).toBe("2");
  });

  test("of ten thousand files is taken whole, and of the second one only what changed", async () => {
    const { codebases, id } = await arrange();
    const files = Array.from({ length: 10_000 }, (_, n) => ({ path: `d${n % 100}/f${n}`, text: `${n} `.repeat(200) }));
    const first = files.map(({ path, text }) => ({ entry: announced(path, text), data: Buffer.from(text) }));
    expect((await codebases.batch(ALICE, id, pieces(...first))).filesChanged).toBe(10_000);
    const changed = files.map(({ path, text }, n) => ({ path, text: n % 1000 === 0 ? "changed" : text }));
    const manifest = changed.map(({ path, text }) => announced(path, text));
    const missing = new Set(await codebases.compare(ALICE, id, manifest));
    expect(missing.size).toBe(10);
    const second = manifest.map(
      (entry, n): BatchPiece => (missing.has(entry.path) ? { entry, data: Buffer.from(changed[n]!.text) } : { entry }),
    );
    const result = await codebases.batch(ALICE, id, pieces(...second), { replaceAll: true });
    expect(result).toEqual({ version: 2, filesChanged: 10, bytesReceived: 70 });
  });
});

describe("limits of an owner", () => {
  test("API-13, RES-19: bytes, files, the size of a file and codebases, checked while content arrives", async () => {
    const { codebases, id, tree } = await arrange({
      limits: { maxFileSize: 1000, maxBytesPerOwner: 2500, maxFilesPerOwner: 4, maxCodebasesPerOwner: 2 },
    });
    const block = "x".repeat(900);
    let sent = 0;
    const endless = async function* () {
      for (;;) {
        sent += 300;
        yield Buffer.alloc(300);
      }
    };
    expect(await refusal(codebases.upload(ALICE, id, "big", endless()))).toBe(
      'LIMIT_EXCEEDED: "big" is too large: a file may have 1000 bytes at most',
    );
    expect(sent).toBeLessThanOrEqual(1500);
    expect(await refusal(codebases.upload(ALICE, id, "big", chunks(), { totalSize: 1001 }))).toMatch(/^LIMIT_EXCEEDED/);
    await codebases.batch(ALICE, id, pieces(["a", block], ["b", block]));
    const full = codebases.upload(ALICE, id, "c", chunks(block));
    expect(await refusal(full)).toBe("LIMIT_EXCEEDED: all codebases of an owner may have 2500 bytes at most");
    await codebases.upload(ALICE, id, "a", chunks(`${block}!`));
    const other = await codebases.create(ALICE, { name: "second", ownerId: "" });
    expect(await refusal(codebases.upload(ALICE, other.id, "c", chunks(block)))).toMatch(/^LIMIT_EXCEEDED.*2500 bytes/);
    expect(await refusal(codebases.create(ALICE, { name: "third", ownerId: "" }))).toBe(
      "LIMIT_EXCEEDED: an owner may have 2 codebases at most",
    );
    const many = pieces(...["1", "2", "3"].map((name) => [name, ""] as const));
    expect(await refusal(codebases.batch(ALICE, other.id, many))).toMatch(/^LIMIT_EXCEEDED.*4 files/);
    await codebases.upload(ALICE, other.id, "1", chunks());
    await codebases.link(ALICE, other.id, "2", "1");
    expect(await refusal(codebases.link(ALICE, other.id, "3", "1"))).toMatch(/^LIMIT_EXCEEDED/);
    await codebases.deleteFile(ALICE, other.id, "1");
    await codebases.link(ALICE, other.id, "3", "1");
    expect(Object.keys(tree())).toEqual(["a", "b"]);
  });

  test("uploads at once do not exceed them together", async () => {
    const { codebases, id } = await arrange({ limits: { maxBytesPerOwner: 1000 } });
    const other = await codebases.create(ALICE, { name: "other", ownerId: "" });
    const results = await Promise.all(
      [id, other.id, id, other.id].map((at, n) =>
        refusal(codebases.upload(ALICE, at, `f${n}`, chunks("x".repeat(400)))),
      ),
    );
    expect(results.filter((result) => result === "it succeeded")).toHaveLength(2);
    const sizes = await Promise.all([id, other.id].map(async (at) => (await codebases.get(ALICE, at)).size));
    expect(sizes.reduce((sum, size) => sum + size)).toBe(800);
  });
});
