import { lstatSync } from "node:fs";
import { expect, test } from "vitest";
import { directory, file, hardlink, link } from "../../support/tree.ts";
import { outcome } from "./caller.ts";
import { append, describeMountedByAnyone, listEntries, read, write } from "./mounted.ts";

const OLD = 1_000_000_000;

describeMountedByAnyone(
  "overlay pitfalls",
  {
    lower: {
      forge: { kept: "kept", victim: "victim" },
      marked: { ".wh.notes.txt": "a file like any other", "notes.txt": "notes" },
      opaque: { old: "old", sub: { deep: "deep" } },
      merged: { one: "1", two: "2", sub: { three: "3" } },
      again: { file: "from the codebase", directory: { inside: "inside" }, link: link("file") },
      movable: { file: "file", sub: { deep: "deep" } },
      renames: { a: "content a", b: "content b", c: "content c", d: "content d" },
      twins: { original: "twin", copy: hardlink("twins/original") },
      sparse: { file: new Uint8Array(0) },
      metadata: { file: file({ content: "x".repeat(100_000), mode: 0o640, mtime: OLD }) },
      parents: directory(
        { sub: directory({ file: "file" }, { mode: 0o750, mtime: OLD + 1 }) },
        { mode: 0o711, mtime: OLD },
      ),
      identity: { file: "file", sub: { file: "file" } },
      listed: { a: "a", b: "b", c: { d: "d" } },
      untouched: { file: file({ content: "read me", mtime: OLD }), sub: {} },
      held: { reader: "before", "map-me": "m".repeat(8192), gone: "still here" },
      changelog: { sub: { file: "file", keep: "keep" }, file: "file" },
    },
  },
  (m) => {
    test("whiteout form: a character device 0/0 is refused and the directory keeps its listing", async () => {
      const { fs } = m;
      expect(await outcome(fs.mknod("forge/victim2", 0o020644, 0, 0))).toBe("EPERM");
      await fs.unlink("forge/victim");
      expect(await outcome(fs.mknod("forge/victim", 0o020644, 0, 0))).toBe("EPERM");
      expect(await fs.listdir("forge")).toEqual(["kept"]);
    });

    test("whiteout form: names with the whiteout prefix can be neither made nor seen", async () => {
      const { fs } = m;
      const reserved = [".wh.kept", ".wh..wh..opq", ".wh.new"];
      for (const name of reserved) {
        const path = `forge/${name}`;
        expect(await outcome(fs.open(path, "O_WRONLY|O_CREAT")), name).toBe("EPERM");
        expect(await outcome(fs.mkdir(path)), name).toBe("EPERM");
        expect(await outcome(fs.symlink("x", path)), name).toBe("EPERM");
        expect(await outcome(fs.link("forge/kept", path)), name).toBe("EPERM");
        expect(await outcome(fs.rename("forge/kept", path)), name).toBe("EPERM");
        expect(await outcome(fs.mkfifo(path)), name).toBe("EPERM");
        expect(await outcome(fs.lstat(path)), name).toBe("ENOENT");
      }
      expect(await fs.listdir("forge")).toEqual(["kept"]);
      expect(await read(fs, "forge/kept")).toBe("kept");
    });

    test("whiteout form: codebase files that happen to have the prefix are plain content", async () => {
      const { fs } = m;
      expect(await fs.listdir("marked")).toEqual([".wh.notes.txt", "notes.txt"]);
      expect(await read(fs, "marked/.wh.notes.txt")).toBe("a file like any other");
      expect(await read(fs, "marked/notes.txt")).toBe("notes");
    });

    test("opaque directories: one made where a codebase directory was removed is empty", async () => {
      const { fs } = m;
      await fs.run(["rm", "-r", "opaque"]);
      await fs.mkdir("opaque");
      expect(await fs.listdir("opaque")).toEqual([]);
      expect(await outcome(fs.lstat("opaque/sub/deep"))).toBe("ENOENT");
      await fs.mkdir("opaque/sub");
      expect(await fs.listdir("opaque/sub")).toEqual([]);
    });

    test("rmdir of a merged directory that shows empty works, and only then", async () => {
      const { fs } = m;
      await write(fs, "merged/new", "new");
      for (const name of ["one", "two", "new", "sub/three"]) {
        expect(await outcome(fs.rmdir("merged")), name).toBe("ENOTEMPTY");
        await fs.unlink(`merged/${name}`);
      }
      expect(await outcome(fs.rmdir("merged"))).toBe("ENOTEMPTY");
      await fs.rmdir("merged/sub");
      await fs.rmdir("merged");
      expect(await outcome(fs.lstat("merged"))).toBe("ENOENT");
      expect(await outcome(fs.lstat("merged/one"))).toBe("ENOENT");
    });

    test("recreating over a whiteout gives the new entry, whatever the kinds", async () => {
      const { fs } = m;
      await fs.unlink("again/file");
      await fs.mkdir("again/file");
      expect(await fs.lstat("again/file")).toMatchObject({ type: "directory" });
      expect(await fs.listdir("again/file")).toEqual([]);
      await fs.rmdir("again/file");
      await fs.symlink("nowhere", "again/file");
      expect(await fs.readlink("again/file")).toBe("nowhere");
      await fs.unlink("again/file");
      await write(fs, "again/file", "new");
      expect(await read(fs, "again/file")).toBe("new");

      await fs.run(["rm", "-r", "again/directory"]);
      await write(fs, "again/directory", "a file now");
      expect(await fs.lstat("again/directory")).toMatchObject({ type: "file", size: 10 });
      await fs.unlink("again/link");
      await fs.mkdir("again/link");
      expect(await fs.listdir("again")).toEqual(["directory", "file", "link"]);
    });

    test("rename of a codebase directory is EXDEV, merged or not, empty target or not", async () => {
      const { fs } = m;
      expect(await outcome(fs.rename("movable", "moved"))).toBe("EXDEV");
      expect(await outcome(fs.rename("movable/sub", "movable/sub2"))).toBe("EXDEV");
      await write(fs, "movable/sub/new", "");
      expect(await outcome(fs.rename("movable/sub", "movable/sub2"))).toBe("EXDEV");
      await fs.mkdir("movable/empty");
      expect(await outcome(fs.rename("movable/sub", "movable/empty"))).toBe("EXDEV");
      expect(await outcome(fs.rename2("movable/sub", "movable/empty", "EXCHANGE"))).toBe("EXDEV");
      expect(await outcome(fs.rename2("movable/empty", "movable/sub", "EXCHANGE"))).toBe("EXDEV");
      expect(await fs.listdir("movable")).toEqual(["empty", "file", "sub"]);
      expect(await fs.listdir("movable/sub")).toEqual(["deep", "new"]);
    });

    test("mv of a codebase directory copies what is visible", async () => {
      const { fs } = m;
      await fs.mkdir("destination");
      expect(await fs.run(["mv", "movable", "destination/"])).toMatchObject({ code: 0, stderr: "" });
      expect(await outcome(fs.lstat("movable"))).toBe("ENOENT");
      expect(await read(fs, "destination/movable/sub/deep")).toBe("deep");
    });

    test("directories that exist only in the delta move freely, with all that is in them", async () => {
      const { fs } = m;
      await fs.mkdir("own");
      await fs.mkdir("own/sub");
      await write(fs, "own/sub/file", "moved along");
      await fs.rename("own", "elsewhere");
      expect(await read(fs, "elsewhere/sub/file")).toBe("moved along");
      await fs.rename("elsewhere/sub", "own");
      expect(await read(fs, "own/file")).toBe("moved along");
      expect(await fs.listdir("elsewhere")).toEqual([]);
      expect(await outcome(fs.lstat("elsewhere/sub/file"))).toBe("ENOENT");
    });

    test("rename onto existing: the source leaves no trace, the target's whiteout vanishes", async () => {
      const { fs } = m;
      await fs.rename("renames/a", "renames/b");
      expect([await fs.listdir("renames"), await read(fs, "renames/b")]).toEqual([["b", "c", "d"], "content a"]);
      await fs.rename("renames/b", "renames/a");
      expect([await fs.listdir("renames"), await read(fs, "renames/a")]).toEqual([["a", "c", "d"], "content a"]);
      expect(await outcome(fs.lstat("renames/b"))).toBe("ENOENT");
    });

    test("RENAME_EXCHANGE swaps, RENAME_NOREPLACE does not replace, RENAME_WHITEOUT is EINVAL", async () => {
      const { fs } = m;
      await fs.rename2("renames/c", "renames/d", "EXCHANGE");
      expect([await read(fs, "renames/c"), await read(fs, "renames/d")]).toEqual(["content d", "content c"]);
      expect(await outcome(fs.rename2("renames/c", "renames/d", "NOREPLACE"))).toBe("EEXIST");
      await fs.rename2("renames/c", "renames/e", "NOREPLACE");
      expect(await read(fs, "renames/e")).toBe("content d");
      expect(await outcome(fs.rename2("renames/d", "renames/f", "WHITEOUT"))).toBe("EINVAL");
      expect(await outcome(fs.rename2("renames/d", "renames/e", "NOREPLACE|EXCHANGE"))).toBe("EINVAL");
    });

    test("hard links of the codebase are separate files with one name each", async () => {
      const { fs } = m;
      const [original, copy] = [await fs.lstat("twins/original"), await fs.lstat("twins/copy")];
      expect([original.nlink, copy.nlink]).toEqual([1, 1]);
      expect(original.ino).not.toBe(copy.ino);
      await append(fs, "twins/original", "!");
      expect([await read(fs, "twins/original"), await read(fs, "twins/copy")]).toEqual(["twin!", "twin"]);
      expect((await fs.lstat("twins/original")).ino).toBe(original.ino);
    });

    test("copy-up of metadata: chmod and utimens keep the content", async () => {
      const { fs } = m;
      await fs.chmod("metadata/file", 0o600);
      expect(await fs.lstat("metadata/file")).toMatchObject({ mode: 0o600, size: 100_000, mtime: `${OLD}000000000` });
      expect(await read(fs, "metadata/file")).toBe("x".repeat(100_000));
    });

    test("copy-up of parents keeps their owner, mode and times", async () => {
      const { fs } = m;
      await append(fs, "parents/sub/file", "more");
      expect(await fs.lstat("parents")).toMatchObject({ mode: 0o711, mtime: `${OLD}000000000` });
      expect(await fs.lstat("parents/sub")).toMatchObject({ mode: 0o750, mtime: `${OLD + 1}000000000` });
      // A change that is visible does move the time.
      await write(fs, "parents/sub/new", "");
      expect(Number((await fs.lstat("parents/sub")).mtime) / 1e9).toBeGreaterThan(OLD + 1000);
      expect((await fs.lstat("parents")).mtime).toBe(`${OLD}000000000`);
    });

    test("inode numbers are the same before and after copy-up and rename, unique, and equal to d_ino", async () => {
      const { fs } = m;
      const before = await fs.lstat("identity/file");
      const parent = await fs.lstat("identity");
      await append(fs, "identity/file", "!");
      expect((await fs.lstat("identity/file")).ino).toBe(before.ino);
      await fs.rename("identity/file", "identity/renamed");
      expect((await fs.lstat("identity/renamed")).ino).toBe(before.ino);
      expect((await fs.lstat("identity")).ino).toBe(parent.ino);
      await fs.symlink("x", "identity/link");

      const entries = await listEntries(fs, "identity");
      expect(entries.map(({ name }) => name).sort()).toEqual([".", "..", "link", "renamed", "sub"]);
      for (const { name, ino } of entries) expect(ino, name).toBe((await fs.lstat(`identity/${name}`)).ino);
      expect(new Set(entries.map(({ ino }) => ino)).size).toBe(entries.length);
    });

    test("st_dev is the same for codebase files, delta files and directories", async () => {
      const { fs } = m;
      await write(fs, "listed/new", "");
      const devices = await Promise.all(
        [".", "listed", "listed/a", "listed/new", "listed/c/d"].map((path) => fs.lstat(path)),
      );
      expect(new Set(devices.map(({ dev }) => dev)).size).toBe(1);
    });

    test("readdir merges the layers without repeating a name, and includes . and ..", async () => {
      const { fs } = m;
      await append(fs, "listed/a", "");
      await fs.chmod("listed/b", 0o600);
      await write(fs, "listed/z", "");
      const names = (await listEntries(fs, "listed")).map(({ name }) => name);
      expect(names.slice(0, 2)).toEqual([".", ".."]);
      expect(names.sort()).toEqual([".", "..", "a", "b", "c", "new", "z"]);
    });

    test("nlink of directories lets find descend into all of them", async () => {
      const { fs } = m;
      await fs.run(["mkdir", "-p", "listed/c/x/y/z"]);
      const { stdout } = await fs.run(["find", "listed", "-type", "d"]);
      expect(stdout.split("\n").sort()).toEqual([
        "",
        "listed",
        "listed/c",
        "listed/c/x",
        "listed/c/x/y",
        "listed/c/x/y/z",
      ]);
    });

    test("reading does not touch the times of the codebase", async () => {
      const { fs, workspace } = m;
      const inode = () => lstatSync(`${workspace.lower}/untouched/file`).atimeMs;
      const atime = inode();
      expect(await read(fs, "untouched/file")).toBe("read me");
      await fs.listdir("untouched");
      await fs.run(["cat", "untouched/file"]);
      expect(inode()).toBe(atime);
    });

    test("internal attributes: a copied-up file and its directory show no xattr that the codebase lacks", async () => {
      const { fs } = m;
      await append(fs, "untouched/file", "!");
      await fs.rmdir("untouched/sub");
      await fs.mkdir("untouched/sub");
      for (const path of ["untouched", "untouched/file", "untouched/sub", "."])
        expect(await fs.listxattr(path), path).toEqual([]);
    });

    test("open, then unlink: the content lives on for those who have it open", async () => {
      const { fs } = m;
      const fd = await fs.open("held/gone", "O_RDWR");
      await fs.unlink("held/gone");
      expect(await fs.pread(fd, 100, 0)).toBe("still here");
      await fs.pwrite(fd, "STILL", 0);
      await fs.ftruncate(fd, 7);
      await fs.fchmod(fd, 0o600);
      expect(await fs.pread(fd, 100, 0)).toBe("STILL h");
      expect(await fs.fstat(fd)).toMatchObject({ nlink: 0, size: 7, mode: 0o600 });
      expect(await fs.listdir("held")).toEqual(["map-me", "reader"]);
      await fs.close(fd);
    });

    test("open for reading, then another writes: the reader sees the new content, also in a mapping", async () => {
      const { fs } = m;
      const reader = await fs.open("held/reader", "O_RDONLY");
      const mapped = await fs.open("held/map-me", "O_RDONLY");
      const map = await fs.map(mapped, 8192, "r");
      expect(await fs.mapRead(map, 4096, 4)).toBe("mmmm");
      expect(await fs.pread(reader, 100, 0)).toBe("before");
      const writer = await fs.open("held/reader", "O_WRONLY");
      await fs.pwrite(writer, "AFTER!!", 0);
      expect(await fs.pread(reader, 100, 0)).toBe("AFTER!!");
      expect((await fs.fstat(reader)).size).toBe(7);
      const mapWriter = await fs.open("held/map-me", "O_WRONLY");
      await fs.pwrite(mapWriter, "NEW!", 4096);
      expect(await fs.mapRead(map, 4096, 4)).toBe("NEW!");
      await fs.unmap(map);
      for (const fd of [reader, mapped, writer, mapWriter]) await fs.close(fd);
    });

    test("changelog: a second unlink does not find the whiteout of the first", async () => {
      const { fs } = m;
      await fs.unlink("changelog/file");
      expect(await outcome(fs.unlink("changelog/file"))).toBe("ENOENT");
      expect(await outcome(fs.rename("changelog/file", "changelog/x"))).toBe("ENOENT");
      expect(await outcome(fs.open("changelog/file", "O_RDONLY"))).toBe("ENOENT");
    });

    test("changelog: unlinking inside an opaque directory, and recreating there, leaves nothing odd", async () => {
      const { fs } = m;
      await fs.run(["rm", "-r", "changelog/sub"]);
      await fs.mkdir("changelog/sub");
      await write(fs, "changelog/sub/file", "own");
      await fs.unlink("changelog/sub/file");
      expect(await fs.listdir("changelog/sub")).toEqual([]);
      await fs.rmdir("changelog/sub");
      expect(await fs.listdir("changelog")).not.toContain("sub");
    });

    test("changelog: fallocate and copy_file_range work on deleted files", async () => {
      const { fs } = m;
      await write(fs, "deleted-a", "0123456789");
      const [a, b] = [await fs.open("deleted-a", "O_RDWR"), await fs.open("deleted-b", "O_RDWR|O_CREAT")];
      await fs.unlink("deleted-a");
      await fs.unlink("deleted-b");
      await fs.fallocate(b, "", 0, 100);
      expect(await fs.copyFileRange(a, b, 5, 2, 0)).toBe(5);
      expect((await fs.pread(b, 200, 0)).length).toBe(100);
      expect(await fs.pread(b, 5, 0)).toBe("23456");
      await fs.close(a);
      await fs.close(b);
    });
  },
);
