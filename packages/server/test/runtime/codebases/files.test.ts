import { createHash } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SERVER } from "../../../src/runtime/caller.ts";
import { ALICE, arrange, BOB, refusal, textOf } from "./fixture.ts";
import { chunks, collected, file, pieces } from "./opening.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

describe("codebases as such", () => {
  test("one is made for the key's owner, found again, and gone when deleted", async () => {
    const { codebases, root, audited } = await arrange();
    const made = await codebases.create(ALICE, { name: "site", ownerId: "" });
    expect(made.id).toMatch(/^cb_[0-9a-f]{32}$/);
    expect(made).toMatchObject({ name: "site", ownerId: "alice", size: 0, fileCount: 0, version: 0 });
    expect(await codebases.get(ALICE, made.id)).toEqual(made);
    expect(statSync(join(root, "codebases", made.id)).mode & 0o777).toBe(0o700);
    await codebases.upload(ALICE, made.id, "a", chunks("x"));
    await codebases.delete(ALICE, made.id);
    expect(await refusal(codebases.get(ALICE, made.id))).toBe("CODEBASE_NOT_FOUND: codebase not found");
    expect(readdirSync(join(root, "codebases"))).not.toContain(made.id);
    const types = audited
      .filter(({ codebaseId }) => codebaseId === made.id)
      .map(({ type, keyId }) => `${type} ${keyId}`);
    expect(types).toEqual(["codebase_created key_a", "files_uploaded key_a", "codebase_deleted key_a"]);
  });

  test("names and owners are checked", async () => {
    const { codebases } = await arrange();
    const create = (name: string, ownerId: string, caller = SERVER) =>
      refusal(codebases.create(caller, { name, ownerId }));
    expect(await create("", "o")).toBe("INVALID_ARGUMENT: name is required");
    expect(await create("n", "")).toBe("INVALID_ARGUMENT: owner_id is required");
    expect(await create("n", "bob", ALICE)).toBe("INVALID_ARGUMENT: owner_id is not the owner of the key");
    expect(await create("a\nb", "o")).toMatch(/^INVALID_ARGUMENT: name has control/);
    expect(await create("x".repeat(257), "o")).toMatch(/^INVALID_ARGUMENT: name is longer/);
    expect(await create("x", "o".repeat(257))).toMatch(/^INVALID_ARGUMENT: owner_id is longer/);
  });

  test("API-03, API-07: ids are checked by shape, and a foreign codebase is not there", async () => {
    const { codebases, id } = await arrange();
    await codebases.upload(ALICE, id, "a", chunks("x"));
    expect(await refusal(codebases.get(SERVER, ""))).toBe("INVALID_ARGUMENT: codebase_id is required");
    for (const bad of ["../x", "cb_", "cb_XYZ", `cb_${"a".repeat(65)}`, `${id}/..`, `${id}\0`, "cb_12"]) {
      expect(await refusal(codebases.get(SERVER, bad))).toMatch(/^INVALID_ARGUMENT: codebase_id/);
    }
    const unknown = "cb_00000000000000000000000000000000";
    const list = { path: "", recursive: false, version: 0, pageSize: 0, pageToken: "" };
    for (const [caller, at] of [
      [BOB, id],
      [ALICE, unknown],
    ] as const) {
      const calls = [
        codebases.get(caller, at),
        codebases.delete(caller, at),
        codebases.upload(caller, at, "a", chunks("y")),
        codebases.link(caller, at, "l", "a"),
        codebases.compare(caller, at, []),
        codebases.batch(caller, at, pieces()),
        codebases.uploadArchive(caller, at, chunks()),
        codebases.deleteFile(caller, at, "a"),
        codebases.renameFile(caller, at, "a", "b"),
        codebases.listFiles(caller, at, list),
        codebases.download(caller, at, "a"),
        codebases.downloadArchive(caller, at, { path: "", version: 0 }),
        codebases.listVersions(caller, at, { pageSize: 0, pageToken: "" }),
        codebases.getVersion(caller, at, 1),
        codebases.rollback(caller, at, 1),
      ];
      for (const call of calls) expect(await refusal(call)).toBe("CODEBASE_NOT_FOUND: codebase not found");
    }
    expect(await textOf(codebases, id, "a")).toBe("x");
  });

  test("API-04: a list has the caller's own, in pages", async () => {
    const { codebases, id } = await arrange();
    const mine = [id];
    for (const name of ["b", "c"]) mine.push((await codebases.create(ALICE, { name, ownerId: "" })).id);
    await codebases.create(BOB, { name: "other", ownerId: "" });
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await codebases.list(ALICE, { ownerId: "", pageSize: 2, pageToken });
      expect(page.items.length).toBeLessThanOrEqual(2);
      seen.push(...page.items.map((one) => one.id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen.sort()).toEqual(mine.sort());
    expect((await codebases.list(ALICE, { ownerId: "bob", pageSize: 0, pageToken: "" })).items).toEqual([]);
    expect((await codebases.list(SERVER, { ownerId: "", pageSize: 0, pageToken: "" })).items).toHaveLength(4);
    expect((await codebases.list(SERVER, { ownerId: "bob", pageSize: 0, pageToken: "" })).items).toHaveLength(1);
    expect(await refusal(codebases.list(ALICE, { ownerId: "", pageSize: 0, pageToken: "?" }))).toMatch(
      /^INVALID_ARGUMENT: page_token/,
    );
  });
});

describe("uploading a file", () => {
  test("it is there, with its size, hash, mode and a version", async () => {
    const { codebases, id, tree, metadata } = await arrange();
    const result = await codebases.upload(ALICE, id, "/src/deep/a.ts", chunks("hel", "lo"), {
      mode: 0o755,
      totalSize: 5,
    });
    expect(result).toEqual({ size: 5, sha256: sha256("hello"), version: 1 });
    expect(tree()).toEqual({ src: "755/", "src/deep": "755/", "src/deep/a.ts": "755 hello" });
    expect(await codebases.get(ALICE, id)).toMatchObject({ size: 5, fileCount: 1, version: 1 });
    expect(await metadata.entry(id, "src/deep/a.ts")).toMatchObject({ kind: "file", mode: 0o755, size: 5, version: 1 });
    const { entry, content } = await codebases.download(ALICE, id, "src/deep/a.ts");
    expect(entry.sha256).toBe(sha256("hello"));
    expect((await collected(content)).toString()).toBe("hello");
  });

  test("what it is planned by is asked of the store in one go", async () => {
    const { codebases, id, metadata } = await arrange();
    const asked = new Set<string>();
    const together: string[][] = [];
    const watched =
      <Parameters extends unknown[], Result>(name: string, ask: (...parameters: Parameters) => Promise<Result>) =>
      async (...parameters: Parameters): Promise<Result> => {
        asked.add(name);
        together.push([...asked]);
        return await ask(...parameters).finally(() => asked.delete(name));
      };
    const { codebase, entries } = metadata;
    Object.assign(metadata, { codebase: watched("codebase", codebase), entries: watched("entries", entries) });
    await codebases.upload(ALICE, id, "a", chunks("hello"));
    expect(together).toEqual([["codebase"], ["codebase"], ["codebase", "entries"]]);
  });

  test("mode 0 keeps that of the file it replaces; special bits are dropped", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.upload(ALICE, id, "run", chunks("1"), { mode: 0o6755 });
    await codebases.upload(ALICE, id, "run", chunks("2"));
    await codebases.upload(ALICE, id, "new", chunks(""));
    expect(tree()).toEqual({ run: "755 2", new: "644 " });
    expect(await refusal(codebases.upload(ALICE, id, "x", chunks(""), { mode: 0o170644 }))).toMatch(
      /^INVALID_ARGUMENT/,
    );
  });

  test("the same content and mode make no version; another mode is another file", async () => {
    const { codebases, id, root } = await arrange();
    await codebases.upload(ALICE, id, "a", chunks("x"));
    const path = join(root, "codebases", id, "tree/a");
    const before = statSync(path).ino;
    expect((await codebases.upload(ALICE, id, "a", chunks("x"))).version).toBe(1);
    expect(statSync(path).ino).toBe(before);
    expect((await codebases.upload(ALICE, id, "a", chunks("x"), { mode: 0o600 })).version).toBe(2);
    expect(statSync(path).ino).not.toBe(before);
    expect(readdirSync(join(root, "codebases", id, "staging"))).toEqual([]);
  });

  test("API-14: what does not arrive as announced is refused and the old file stays", async () => {
    const { codebases, id, tree, root } = await arrange();
    await codebases.upload(ALICE, id, "a", chunks("old"));
    const upload = (text: string, options: object) => refusal(codebases.upload(ALICE, id, "a", chunks(text), options));
    expect(await upload("new", { totalSize: 4 })).toMatch(/^UPLOAD_MISMATCH: "a".*3 bytes arrived, 4/);
    expect(await upload("newer", { totalSize: 4 })).toMatch(/^UPLOAD_MISMATCH: "a".*more than/);
    expect(await upload("new", { sha256: sha256("other") })).toMatch(/^UPLOAD_MISMATCH/);
    expect(await upload("new", { sha256: "abc" })).toMatch(/^INVALID_ARGUMENT/);
    const broken = async function* () {
      yield Buffer.from("half");
      throw new Error("the client went away");
    };
    await expect(codebases.upload(ALICE, id, "a", broken())).rejects.toThrow("the client went away");
    const aborted = new AbortController();
    const stopping = async function* () {
      yield Buffer.from("half");
      aborted.abort();
      yield Buffer.from("more");
    };
    expect(await refusal(codebases.upload(ALICE, id, "a", stopping(), { signal: aborted.signal }))).toMatch(
      /^CANCELLED/,
    );
    expect(tree()).toEqual({ a: "644 old" });
    expect(readdirSync(join(root, "codebases", id, "staging"))).toEqual([]);
  });

  test("an upload into a codebase that is deleted meanwhile finds nothing there", async () => {
    const { codebases, id, root } = await arrange();
    const slow = async function* () {
      yield Buffer.alloc(2 << 20);
      await codebases.delete(ALICE, id);
      yield Buffer.alloc(2 << 20);
    };
    expect(await refusal(codebases.upload(ALICE, id, "a", slow()))).toMatch(/^CODEBASE_NOT_FOUND/);
    expect(readdirSync(join(root, "codebases"))).toEqual([]);
  });

  test("API-15: two uploads to one path at once: one wins as a whole", async () => {
    const { codebases, id } = await arrange();
    const big = (letter: string) => Array.from({ length: 40 }, () => Buffer.alloc(100_000, letter));
    await Promise.all(["a", "b", "c"].map((letter) => codebases.upload(ALICE, id, "f", chunks(...big(letter)))));
    const text = await textOf(codebases, id, "f");
    expect(text).toBe(text[0]!.repeat(4_000_000));
    expect((await codebases.get(ALICE, id)).version).toBe(3);
  });

  test("a path below a file or a link is refused, and so is a file in place of a directory", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.upload(ALICE, id, "f", chunks("f"));
    await codebases.upload(ALICE, id, "d/x", chunks("x"));
    await codebases.link(ALICE, id, "l", "d");
    const before = tree();
    for (const path of ["f/x", "l/x", "l/y/z"]) {
      expect(await refusal(codebases.upload(ALICE, id, path, chunks("evil")))).toMatch(/^FILE_WRONG_KIND/);
    }
    expect(await refusal(codebases.upload(ALICE, id, "d", chunks("evil")))).toBe('FILE_WRONG_KIND: "d" is a directory');
    expect(await refusal(codebases.link(ALICE, id, "d", "x"))).toBe('FILE_WRONG_KIND: "d" is a directory');
    expect(tree()).toEqual(before);
  });
});

const BAD_PATHS = [
  ...["", "/", "//a", "..", ".", "a/..", "a/../../b", "../a", "./a", "a//b", "a/"],
  ...["a\\b", "a\0b", "a\nb", "a\u0085", "\ud800", "a/\udc80b"],
  ...["x".repeat(256), "é".repeat(128), "a/".repeat(257).slice(0, -1), `${"n".repeat(200)}/`.repeat(21).slice(0, -1)],
];

test("API-08: a path that leads out, is empty, too long or not plain text is refused before anything happens", async () => {
  const { codebases, id, tree } = await arrange();
  const unread = {
    [Symbol.asyncIterator]: () => {
      throw new Error("the content must not be read");
    },
  };
  for (const path of BAD_PATHS) {
    const calls = [
      codebases.upload(ALICE, id, path, unread),
      codebases.link(ALICE, id, path, "x"),
      codebases.download(ALICE, id, path),
      codebases.deleteFile(ALICE, id, path),
      codebases.renameFile(ALICE, id, path, "b"),
      codebases.renameFile(ALICE, id, "b", path),
      codebases.compare(ALICE, id, [file(path)]),
      codebases.batch(ALICE, id, pieces({ entry: file(path) })),
    ];
    for (const call of calls) expect(await refusal(call), path).toMatch(/^INVALID_ARGUMENT: invalid path/);
  }
  expect(tree()).toEqual({});
});

test("the longest path and the longest name work", async () => {
  const { codebases, id } = await arrange();
  const name = "n".repeat(255);
  await codebases.upload(ALICE, id, name, chunks("1"));
  await codebases.deleteFile(ALICE, id, name);
  const fits = `${`${name}/`.repeat(15)}${"m".repeat(253)}/z`;
  expect(Buffer.byteLength(fits)).toBe(4095);
  await codebases.upload(ALICE, id, fits, chunks("3"));
  expect(await textOf(codebases, id, fits)).toBe("3");
  await codebases.upload(ALICE, id, `${"d/".repeat(255)}f`, chunks("deep"));
  const layer = await codebases.open(id, 3);
  await layer.release();
  await codebases.rollback(ALICE, id, 1);
  expect(await textOf(codebases, id, name)).toBe("1");
});

describe("symbolic links", () => {
  test("API-09: they are data, and never followed", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.link(ALICE, id, "abroad", "/etc/passwd");
    await codebases.link(ALICE, id, "up", "../../..");
    await codebases.link(ALICE, id, "abroad", "/etc/hostname");
    expect(tree()).toEqual({ abroad: "-> /etc/hostname", up: "-> ../../.." });
    expect(await refusal(codebases.download(ALICE, id, "abroad"))).toBe(
      'FILE_WRONG_KIND: "abroad" is a symlink, not a file',
    );
    expect(await refusal(codebases.download(ALICE, id, "up/x"))).toBe("FILE_NOT_FOUND: file not found: up/x");
    const list = { path: "up", recursive: false, version: 0, pageSize: 0, pageToken: "" };
    expect(await refusal(codebases.listFiles(ALICE, id, list))).toMatch(/^FILE_WRONG_KIND/);
    await codebases.upload(ALICE, id, "abroad", chunks("mine"));
    expect(tree()).toEqual({ abroad: "644 mine", up: "-> ../../.." });
    expect(await codebases.get(ALICE, id)).toMatchObject({ size: 4, fileCount: 2 });
  });

  test("a target that is empty, too long or not plain text is refused", async () => {
    const { codebases, id } = await arrange();
    for (const target of ["", "a\0b", "x".repeat(4096), "\ud800"]) {
      expect(await refusal(codebases.link(ALICE, id, "l", target))).toMatch(
        /^INVALID_ARGUMENT: invalid symlink target/,
      );
    }
  });
});

describe("deleting and renaming", () => {
  test("a file goes, its directory stays; a directory goes when asked with all in it", async () => {
    const { codebases, id, tree, audited } = await arrange();
    await codebases.batch(ALICE, id, pieces(["d/a", "1"], ["d/e/b", "2"], ["c", "3"]));
    expect(await refusal(codebases.deleteFile(ALICE, id, "nothing"))).toBe("FILE_NOT_FOUND: file not found: nothing");
    expect(await codebases.deleteFile(ALICE, id, "d/e/b")).toEqual({ version: 2, filesChanged: 1, bytesReceived: 0 });
    expect(tree()).toEqual({ d: "755/", "d/a": "644 1", "d/e": "755/", c: "644 3" });
    expect(await refusal(codebases.deleteFile(ALICE, id, "d"))).toMatch(
      /^FILE_WRONG_KIND: "d" is a directory that is not/,
    );
    expect((await codebases.deleteFile(ALICE, id, "d", { recursive: true })).filesChanged).toBe(1);
    expect(tree()).toEqual({ c: "644 3" });
    expect(await codebases.get(ALICE, id)).toMatchObject({ size: 1, fileCount: 1 });
    expect(audited.at(-1)).toMatchObject({ type: "file_deleted", data: { path: "d", version: 3, files: 1 } });
  });

  test("files and whole directories move", async () => {
    const { codebases, id, tree } = await arrange();
    await codebases.batch(ALICE, id, pieces(["d/a", "1"], ["d/e/b", "2"], ["c", "3"]));
    await codebases.link(ALICE, id, "d/l", "a");
    expect(await codebases.renameFile(ALICE, id, "d", "x/y")).toEqual({
      version: 3,
      filesChanged: 3,
      bytesReceived: 0,
    });
    expect(tree()).toEqual({
      x: "755/",
      "x/y": "755/",
      "x/y/a": "644 1",
      "x/y/e": "755/",
      "x/y/e/b": "644 2",
      "x/y/l": "-> a",
      c: "644 3",
    });
    await codebases.renameFile(ALICE, id, "c", "x/c");
    expect(await textOf(codebases, id, "x/c")).toBe("3");
    expect(await textOf(codebases, id, "d/e/b", 1)).toBe("2");
    const rename = (from: string, to: string) => refusal(codebases.renameFile(ALICE, id, from, to));
    expect(await rename("gone", "b")).toBe("FILE_NOT_FOUND: file not found: gone");
    expect(await rename("x/c", "x/y")).toBe('FILE_EXISTS: "x/y" exists already');
    expect(await rename("x", "x/z")).toBe('INVALID_ARGUMENT: "x" cannot be moved into itself');
    expect(await rename("x/y", "x/c/z")).toMatch(/^FILE_WRONG_KIND/);
    expect(await codebases.get(ALICE, id)).toMatchObject({ size: 3, fileCount: 4 });
  });
});

describe("listing", () => {
  const all = { recursive: true, version: 0, pageSize: 0, pageToken: "" };

  test("a directory, or all below it, in the order of their paths", async () => {
    const { codebases, id } = await arrange();
    await codebases.batch(ALICE, id, pieces(["b/x", "1"], ["b/y/z", "2"], ["a", "3"], ["b.txt", "4"]));
    const paths = async (path: string, recursive: boolean) =>
      (await codebases.listFiles(ALICE, id, { ...all, path, recursive })).items.map((entry) => entry.path);
    expect(await paths("", false)).toEqual(["a", "b", "b.txt"]);
    expect(await paths("/", true)).toEqual(["a", "b", "b.txt", "b/x", "b/y", "b/y/z"]);
    expect(await paths("b", false)).toEqual(["b/x", "b/y"]);
    expect(await paths("b/", true)).toEqual(["b/x", "b/y", "b/y/z"]);
    expect(await paths("missing", false)).toEqual([]);
    expect(await refusal(paths("missing", true))).toBe("FILE_NOT_FOUND: file not found: missing");
    expect(await refusal(paths("a", false))).toBe('FILE_WRONG_KIND: "a" is a file, not a directory');
    expect(await refusal(paths("../x", false))).toMatch(/^INVALID_ARGUMENT/);
  });

  test("pages are of one version, whatever changes between them", async () => {
    const { codebases, id } = await arrange();
    await codebases.batch(ALICE, id, pieces(...Array.from({ length: 7 }, (_, n) => [`f${n}`, String(n)] as const)));
    const query = { ...all, path: "", pageSize: 3 };
    const first = await codebases.listFiles(ALICE, id, query);
    await codebases.batch(
      ALICE,
      id,
      pieces(["f0a", "new"], { entry: { kind: "absent", path: "f4" } }, ["f5", "other"]),
    );
    const second = await codebases.listFiles(ALICE, id, { ...query, pageToken: first.nextPageToken });
    const third = await codebases.listFiles(ALICE, id, { ...query, pageToken: second.nextPageToken });
    const seen = [first, second, third].flatMap(({ items }) => items.map(({ path, sha256: hash }) => [path, hash]));
    expect(seen).toEqual(Array.from({ length: 7 }, (_, n) => [`f${n}`, sha256(String(n))]));
    expect(third.nextPageToken).toBe("");
  });
});
