import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type TarEntry, tar } from "../../../../../test/support/tar.ts";
import { SERVER } from "../../../src/runtime/caller.ts";
import type { BatchPiece } from "../../../src/runtime/codebases/api.ts";
import { readTar } from "../../../src/runtime/codebases/tar.ts";
import { ALICE, arrange, refusal, shapeOf, temporary, textOf } from "./fixture.ts";
import { chunks, collected, openPlace, pieces } from "./opening.ts";

const absent = (path: string): BatchPiece => ({ entry: { kind: "absent", path } });

describe("versions", () => {
  test("each can be listed, read and gone back to", async () => {
    const { codebases, id, tree, audited } = await arrange();
    await codebases.batch(ALICE, id, pieces(["a", "1"], ["d/b", "2"]));
    const first = tree();
    await codebases.batch(ALICE, id, pieces(["a", "one"], absent("d/b"), ["c", "3"]));
    await codebases.renameFile(ALICE, id, "c", "d/c");
    const third = tree();
    expect(await textOf(codebases, id, "a", 1)).toBe("1");
    expect(await textOf(codebases, id, "d/b", 1)).toBe("2");
    expect(await textOf(codebases, id, "c", 2)).toBe("3");
    expect(await refusal(codebases.download(ALICE, id, "c", { version: 1 }))).toBe("FILE_NOT_FOUND: file not found: c");
    expect(await refusal(codebases.download(ALICE, id, "d/b"))).toBe("FILE_NOT_FOUND: file not found: d/b");
    const listing = await codebases.listFiles(ALICE, id, {
      path: "",
      recursive: true,
      version: 1,
      pageSize: 0,
      pageToken: "",
    });
    expect(listing.items.map(({ path, size, version }) => `${path} ${size} ${version}`)).toEqual([
      "a 1 1",
      "d 0 1",
      "d/b 1 1",
    ]);

    const back = await codebases.rollback(ALICE, id, 1);
    expect(back).toMatchObject({ version: 4, origin: "rollback", message: "rollback to version 1", filesChanged: 3 });
    expect(tree()).toEqual(first);
    expect(await codebases.get(ALICE, id)).toMatchObject({ size: 2, fileCount: 2, version: 4 });
    expect(audited.at(-1)).toMatchObject({ type: "version_rolled_back", data: { to_version: 1, version: 4 } });
    expect(await codebases.rollback(ALICE, id, 4)).toEqual(back);
    await codebases.rollback(ALICE, id, 3);
    expect(tree()).toEqual(third);
    expect(await textOf(codebases, id, "d/b", 4)).toBe("2");

    const { items, nextPageToken } = await codebases.listVersions(ALICE, id, { pageSize: 2, pageToken: "" });
    const more = await codebases.listVersions(ALICE, id, { pageSize: 100, pageToken: nextPageToken });
    expect([...items, ...more.items].map(({ version, origin }) => `${version} ${origin}`)).toEqual([
      "5 rollback",
      "4 rollback",
      "3 rename",
      "2 upload",
      "1 upload",
    ]);
    expect((await codebases.getVersion(ALICE, id, 2)).changes).toEqual([
      { kind: "modified", path: "a", size: 3, sensitive: false },
      { kind: "added", path: "c", size: 1, sensitive: false },
      { kind: "deleted", path: "d/b", size: 1, sensitive: false },
    ]);
    expect(await refusal(codebases.getVersion(ALICE, id, 9))).toMatch(/^VERSION_NOT_FOUND: version 9 not found/);
    expect(await refusal(codebases.rollback(ALICE, id, 9))).toBe("VERSION_NOT_FOUND: version 9 not found");
    expect(await refusal(codebases.rollback(ALICE, id, 0))).toMatch(/^INVALID_ARGUMENT/);
    expect(await refusal(codebases.download(ALICE, id, "a", { version: -1 }))).toMatch(/^INVALID_ARGUMENT/);
  });

  test("a pinned version is one directory for all who want it, and does not change", async () => {
    const { codebases, id, root, tree } = await arrange();
    await codebases.batch(
      ALICE,
      id,
      pieces(["a", "1"], ["d/b", "2"], { entry: { kind: "directory", path: "e", mode: 0o700 } }),
    );
    await codebases.link(ALICE, id, "l", "a");
    const second = tree();
    const head = await codebases.open(id, 0);
    const [one, two] = await Promise.all([codebases.open(id, 2), codebases.open(id, 2)]);
    expect(one.directory).toBe(two.directory);
    await codebases.batch(ALICE, id, pieces(["a", "one"], absent("d"), ["new", "3"]));
    expect(shapeOf(one.directory)).toEqual(second);
    expect(shapeOf(head.directory)).toEqual(tree());
    const late = await codebases.open(id, 1);
    expect(shapeOf(late.directory)).toEqual({ a: "644 1", d: "755/", "d/b": "644 2", e: "700/" });
    await one.release();
    await one.release();
    expect(shapeOf(two.directory)).toEqual(second);
    await two.release();
    await late.release();
    expect(readdirSync(join(root, "codebases", id, "pinned"))).toEqual([]);
    const again = await codebases.open(id, 2);
    expect(shapeOf(again.directory)).toEqual(second);
    expect(await refusal(codebases.open(id, 9))).toMatch(/^VERSION_NOT_FOUND/);
    expect(await refusal(codebases.open("cb_0000000000000000", 0))).toMatch(/^CODEBASE_NOT_FOUND/);
  });

  test("a reader of the newest version is not disturbed by a change", async () => {
    const { codebases, id } = await arrange();
    const old = "o".repeat(1_000_000);
    await codebases.batch(ALICE, id, pieces(["a", old], ["b", old], ["c", old]));
    const { content } = await codebases.download(ALICE, id, "a");
    const archive = (await codebases.downloadArchive(ALICE, id, { path: "", version: 0 }))[Symbol.asyncIterator]();
    const parts = [(await archive.next()).value as Uint8Array];
    await codebases.batch(ALICE, id, pieces(["a", "new"], absent("b")));
    await codebases.renameFile(ALICE, id, "c", "d");
    expect((await collected(content)).toString()).toBe(old);
    for (let next = await archive.next(); next.done !== true; next = await archive.next()) parts.push(next.value);
    expect(await unpacked(chunks(...parts))).toEqual({
      a: `file 644 ${old}`,
      b: `file 644 ${old}`,
      c: `file 644 ${old}`,
    });
  });

  test("readers during changes see a version as a whole", async () => {
    const { codebases, id } = await arrange();
    const names = Array.from({ length: 40 }, (_, n) => `f${n}`);
    const write = (text: string) => codebases.batch(ALICE, id, pieces(...names.map((name) => [name, text] as const)));
    await write("0");
    let isWriting = true;
    const writing = (async () => {
      for (let n = 1; n <= 25; n++) {
        await write(String(n).repeat(n));
        if (n % 5 === 0) await codebases.deleteFile(ALICE, id, "f3");
      }
      isWriting = false;
    })();
    let read = 0;
    while (isWriting) {
      const { entry, content } = await codebases.download(ALICE, id, "f7");
      expect((await collected(content)).length).toBe(entry.size);
      const files = Object.values(await unpacked(await codebases.downloadArchive(ALICE, id, { path: "", version: 0 })));
      expect(new Set(files).size).toBe(1);
      expect([39, 40]).toContain(files.length);
      read += 1;
    }
    await writing;
    expect(read).toBeGreaterThan(0);
  });
});

describe("archives", () => {
  test("what is downloaded can be uploaded again", async () => {
    const { codebases, id, tree } = await arrange();
    const deep = `${"long-directory-name/".repeat(12)}file-with-ümlaut`;
    await codebases.batch(
      ALICE,
      id,
      pieces(["src/a.ts", "hello"], [deep, "deep"], ["empty", ""], {
        entry: { kind: "directory", path: "bare", mode: 0o700 },
      }),
    );
    await codebases.link(ALICE, id, "src/l", "../".repeat(60));
    await codebases.upload(ALICE, id, "run", chunks("#!"), { mode: 0o755 });
    const whole = await collected(await codebases.downloadArchive(ALICE, id, { path: "", version: 0 }));
    const other = await codebases.create(ALICE, { name: "copy", ownerId: "" });
    const result = await codebases.uploadArchive(ALICE, other.id, chunks(whole.subarray(0, 700), whole.subarray(700)));
    expect(result).toMatchObject({ version: 1, filesChanged: 5 });
    expect(tree(other.id)).toEqual(tree());
    const part = await unpacked(await codebases.downloadArchive(ALICE, id, { path: "src", version: 1 }));
    expect(part).toEqual({ "a.ts": "file 644 hello" });
    const archive = (path: string) => refusal(codebases.downloadArchive(ALICE, id, { path, version: 0 }));
    expect(await archive("missing")).toBe("FILE_NOT_FOUND: file not found: missing");
    expect(await archive("run")).toMatch(/^FILE_WRONG_KIND/);
  });

  test("an archive that nobody reads to its end lets go of everything", async () => {
    const { codebases, id } = await arrange();
    await codebases.batch(ALICE, id, pieces(...["a", "b", "c"].map((name) => [name, "x".repeat(500_000)] as const)));
    const open = () => readdirSync("/proc/self/fd").length;
    const before = open();
    for (let n = 0; n < 10; n++) {
      for await (const _ of await codebases.downloadArchive(ALICE, id, { path: "", version: 0 })) break;
      for await (const _ of (await codebases.download(ALICE, id, "a")).content) break;
    }
    expect(open()).toBeLessThanOrEqual(before + 1);
  });

  test("API-11: entries that lead out, links of the hard kind, devices and duplicates are refused", async () => {
    const { codebases, id, tree } = await arrange({ limits: { maxFilesPerOwner: 5, maxFileSize: 100 } });
    const upload = (...entries: readonly TarEntry[]) =>
      refusal(codebases.uploadArchive(ALICE, id, chunks(tar(entries))));
    const fine = { name: "fine", content: "x" };
    expect(await upload(fine, { name: "/etc/passwd", content: "x" })).toBe(
      'INVALID_ARGUMENT: the archive\'s entry "/etc/passwd" is refused: its name is absolute',
    );
    expect(await upload(fine, { name: "../x", content: "x" })).toMatch(/^INVALID_ARGUMENT: invalid path "\.\.\/x"/);
    expect(await upload(fine, { name: "a/../../x", content: "x" })).toMatch(/^INVALID_ARGUMENT: invalid path/);
    expect(await upload(fine, { name: "h", type: "1", linkName: "fine" })).toMatch(/"h" is refused: it is a hard link/);
    for (const [type, kind] of Object.entries({
      3: "character device",
      4: "block device",
      6: "fifo",
      S: "special file",
    })) {
      expect(await upload(fine, { name: "dev", type })).toMatch(new RegExp(`"dev" is refused: it is a ${kind}`));
    }
    expect(await upload(fine, fine)).toBe('INVALID_ARGUMENT: "fine" is named twice');
    expect(await upload(fine, { name: "l", type: "2", linkName: "/etc" }, { name: "l/x", content: "x" })).toMatch(
      /^INVALID_ARGUMENT: "l\/x" cannot be below "l"/,
    );
    expect(await upload({ name: "big", content: "x".repeat(101) })).toMatch(/^LIMIT_EXCEEDED/);
    expect(await upload(...Array.from({ length: 6 }, (_, n) => ({ name: `f${n}`, content: "x" })))).toMatch(
      /^LIMIT_EXCEEDED/,
    );
    const damaged = (...parts: Uint8Array[]) => refusal(codebases.uploadArchive(ALICE, id, chunks(...parts)));
    expect(await damaged(Buffer.alloc(600, "x"))).toBe("INVALID_ARGUMENT: the archive is damaged");
    expect(await damaged(Buffer.from([0x1f, 0x8b, 8, 0]))).toMatch(/^INVALID_ARGUMENT: the archive is compressed/);
    const bytes = tar([{ name: "cut", content: "x".repeat(90) }]);
    expect(await damaged(bytes.subarray(0, 540))).toBe("INVALID_ARGUMENT: the archive is damaged");
    expect(tree()).toEqual({});
    expect(
      await upload(
        { name: "./", type: "5" },
        { name: "./d/", type: "5", mode: "0000755" },
        { name: "./d/x", content: "1" },
      ),
    ).toBe("it succeeded");
    expect(tree()).toEqual({ d: "755/", "d/x": "644 1" });
  });
});

describe("a start", () => {
  test("removes what uploads, pins and unknown codebases left, and nothing else", async () => {
    const root = temporary();
    const at = (...names: string[]) => join(root, "codebases", ...names);
    let id = "";
    {
      await using place = await openPlace(root);
      ({ id } = await place.codebases.create(SERVER, { name: "p", ownerId: "o" }));
      await place.codebases.upload(SERVER, id, "a", chunks("1"));
      await place.codebases.open(id, 1);
      await expect(openPlace(root)).rejects.toThrow("in use by another server");
    }
    mkdirSync(at(id, "staging/left"));
    writeFileSync(at(id, "staging/left/0"), "half");
    mkdirSync(at("cb_0123456789abcdef0123456789abcdef", "tree"), { recursive: true });
    mkdirSync(at("lost+found"));
    await using place = await openPlace(root);
    expect(readdirSync(at(id, "staging"))).toEqual([]);
    expect(readdirSync(at(id, "pinned"))).toEqual([]);
    expect(readdirSync(at()).sort()).toEqual([id, "lost+found"].sort());
    expect(await textOf(place.codebases, id, "a")).toBe("1");
    expect(statSync(at()).mode & 0o777).toBe(0o700);
    expect(readFileSync(at(id, "tree/a"), "utf8")).toBe("1");
  });
});

/** "type mode content" by name. */
async function unpacked(archive: AsyncIterable<Uint8Array>): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  let name = "";
  for await (const piece of readTar(archive)) {
    if ("data" in piece) {
      found[name] += String(piece.data);
      continue;
    }
    name = String(piece.entry.name);
    found[name] = `${piece.entry.type} ${piece.entry.mode.toString(8)} `;
  }
  return found;
}
