import { chownSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanStaleMount, listChanges } from "@agentfense/server/isolation";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { AT, MAP, O, PROT, S } from "../../../support/constants.ts";
import { aWhile, eventually } from "../../../support/eventually.ts";
import { PeerEnded } from "../../../support/peer.ts";
import { rounds } from "../../../support/rounds.ts";
import { cString, syscall } from "../../../support/syscall.ts";
import { file, link, type Tree } from "../../../support/tree.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { CANARY } from "../codebase.ts";

const WRITE_ALL = [{ pattern: "/**", permission: "write" }] as const;

describeAttack("the layers", (arena) => {
  const open = (lower: Tree, more: Partial<Parameters<typeof arena.open>[0]> = {}): Promise<TestWorkspace> =>
    arena.open({ lower, rules: WRITE_ALL, ...more });

  const stat = async (path: string) => {
    const answer = await arena.probe.call("statx", path, AT.STATX_FORCE_SYNC | AT.SYMLINK_NOFOLLOW);
    if (answer.stat === undefined) throw new Error(`${path}: ${answer.errno}`);
    return answer.stat;
  };

  const textAt = async (fd: number): Promise<string> => {
    const answer = await arena.probe.call("pread", fd, 1000, 0);
    return answer.data === undefined ? answer.errno : Buffer.from(answer.data).toString();
  };

  test("L-01 what is written goes to the delta, over a codebase that stays as it is", async () => {
    const { probe } = arena;
    const workspace = await open({ "a.txt": "codebase", "b.txt": "codebase", dir: { "c.txt": "codebase" } });
    const errnos = await probe.errnos([
      ["writeFile", workspace.at("/a.txt"), "delta"],
      ["unlinkat", workspace.at("/b.txt")],
      ["writeFile", workspace.at("/dir/new.txt"), "delta"],
      ["mkdirat", workspace.at("/made")],
    ]);
    expect(errnos).toEqual(Array(4).fill("OK"));
    for (const again of [false, true]) {
      if (again) await workspace.remount();
      expect(await probe.names(workspace.mountPoint)).toEqual(["a.txt", "dir", "made"]);
      expect(await probe.names(workspace.at("/dir"))).toEqual(["c.txt", "new.txt"]);
      expect(await probe.text(workspace.at("/a.txt"))).toBe("delta");
      expect(await probe.text(workspace.at("/dir/c.txt"))).toBe("codebase");
    }
    expect(readFileSync(join(workspace.delta, "tree/a.txt"), "utf8")).toBe("delta");
    const changes = await Array.fromAsync(listChanges({ delta: workspace.delta, lowers: [workspace.lower] }));
    expect(changes.map(({ kind, path }) => `${kind} ${path}`).sort()).toEqual(
      expect.arrayContaining(["added /dir/new.txt", "added /made", "deleted /b.txt", "modified /a.txt"]),
    );
    workspace.assertLowerUntouched();
  });

  test("L-02 any number of codebase layers make one view, upper ones first", async () => {
    const { probe } = arena;
    const workspace = await arena.open({
      lower: { "a.txt": "top", dir: { "top.txt": "top" }, swap: "a file on top" },
      lowers: [
        { "a.txt": "middle", "b.txt": "middle", dir: { "middle.txt": "middle" }, swap: { "x.txt": "x" } },
        { "b.txt": "bottom", "c.txt": "bottom", dir: { "bottom.txt": "bottom", "middle.txt": "bottom" } },
      ],
      rules: WRITE_ALL,
    });
    const texts = ["/a.txt", "/b.txt", "/c.txt", "/dir/middle.txt", "/dir/bottom.txt", "/swap"].map((path) =>
      probe.text(workspace.at(path)),
    );
    expect(await Promise.all(texts)).toEqual(["top", "middle", "bottom", "middle", "bottom", "a file on top"]);
    expect(await probe.names(workspace.at("/dir"))).toEqual(["bottom.txt", "middle.txt", "top.txt"]);
    const errnos = await probe.errnos([
      ["unlinkat", workspace.at("/b.txt")],
      ["writeFile", workspace.at("/c.txt"), "+", O.WRONLY | O.APPEND],
      ["unlinkat", workspace.at("/dir/middle.txt")],
    ]);
    expect(errnos).toEqual(["OK", "OK", "OK"]);
    await workspace.remount();
    expect(await probe.names(workspace.mountPoint)).toEqual(["a.txt", "c.txt", "dir", "swap"]);
    expect(await probe.names(workspace.at("/dir"))).toEqual(["bottom.txt", "top.txt"]);
    expect(await probe.text(workspace.at("/c.txt"))).toBe("bottom+");
  });

  test("L-03 a link in the codebase is a link, and following it happens outside of the engine", async () => {
    const { probe } = arena;
    const workspace = await open({
      inside: { "real.txt": "real" },
      "to-inside": link("inside"),
      "to-host": link("/etc"),
      up: link("../../.."),
    });
    expect((await probe.call("readlinkat", workspace.at("/to-host"))).text).toBe("/etc");
    expect((await stat(workspace.at("/to-host"))).mode & S.IFMT).toBe(S.IFLNK);
    expect(await probe.text(workspace.at("/to-inside/real.txt"))).toBe("real");
  });

  test("L-03 a link planted in the delta leads nowhere", async () => {
    const { probe } = arena;
    const workspace = await open({ dir: { "a.txt": "codebase" }, other: { "b.txt": "codebase" } });
    const outside = join(workspace.root, "outside");
    mkdirSync(outside, { mode: 0o777 });
    writeFileSync(join(outside, "a.txt"), CANARY.outside);
    writeFileSync(join(outside, "b.txt"), CANARY.outside);
    expect(await probe.errnoOf("fstatat", workspace.at("/dir/a.txt"))).toBe("OK");
    symlinkSync(outside, join(workspace.delta, "tree/dir"));
    await probe.batch([
      ["writeFile", workspace.at("/dir/a.txt"), "written"],
      ["writeFile", workspace.at("/dir/new.txt"), "written"],
      ["unlinkat", workspace.at("/dir/a.txt")],
      ["fchmodat", workspace.at("/dir/a.txt"), 0o600],
      ["mkdirat", workspace.at("/dir/sub")],
    ]);
    expect(readdirSync(outside).sort()).toEqual(["a.txt", "b.txt"]);
    for (const name of ["a.txt", "b.txt"]) expect(readFileSync(join(outside, name), "utf8")).toBe(CANARY.outside);
    const followed = workspace.at("/dir");
    const { mode } = await stat(followed);
    if ((mode & S.IFMT) === S.IFDIR) expect(await probe.text(`${followed}/a.txt`)).not.toBe(CANARY.outside);
  });

  test("L-03 a directory replaced by a link of its own name stays what it was for those who hold it", async () => {
    const { probe } = arena;
    const workspace = await open({ "keep.txt": "keep" });
    const outside = join(workspace.root, "outside");
    mkdirSync(outside, { mode: 0o777 });
    writeFileSync(join(outside, "file"), CANARY.outside);
    const made = await probe.errnos([
      ["mkdirat", workspace.at("/d")],
      ["writeFile", workspace.at("/d/file"), "own"],
      ["chdir", workspace.at("/d")],
    ]);
    expect(made).toEqual(["OK", "OK", "OK"]);
    const swapped = await probe.errnos([
      ["symlinkat", outside, "d"],
      ["renameat2", workspace.at("/d"), workspace.at("/e")],
      ["symlinkat", outside, workspace.at("/d")],
    ]);
    expect(swapped).toEqual(["OK", "OK", "OK"]);
    const answers = await probe.batch([
      ["readFile", "file"],
      ["writeFile", "new", "planted"],
      ["readFile", workspace.at("/e/file")],
    ]);
    await probe.call("chdir", "/");
    const texts = answers.map((answer) =>
      answer.data === undefined ? answer.errno : Buffer.from(answer.data).toString(),
    );
    expect(texts).toEqual(["own", "OK", "own"]);
    expect(readdirSync(outside)).toEqual(["file"]);
    expect(await probe.names(workspace.at("/e"))).toEqual(["d", "file", "new"]);
  });

  test("L-04 deletions are whiteouts and opaque marks of an OCI layer", async () => {
    const { probe } = arena;
    const workspace = await open({ "a.txt": "a", dir: { "b.txt": "b", "c.txt": "c" }, gone: { "d.txt": "d" } });
    const errnos = await probe.errnos([
      ["unlinkat", workspace.at("/a.txt")],
      ["unlinkat", workspace.at("/dir/b.txt")],
      ["unlinkat", workspace.at("/gone/d.txt")],
      ["rmdir", workspace.at("/gone")],
      ["mkdirat", workspace.at("/gone")],
      ["writeFile", workspace.at("/gone/new.txt"), "new"],
    ]);
    expect(errnos).toEqual(Array(6).fill("OK"));
    await workspace.remount();
    const tree = join(workspace.delta, "tree");
    expect(readdirSync(tree).sort()).toEqual([".wh.a.txt", "dir", "gone"]);
    expect(readdirSync(join(tree, "dir"))).toEqual([".wh.b.txt"]);
    expect(readdirSync(join(tree, "gone")).sort()).toEqual([".wh..wh..opq", "new.txt"]);
    for (const mark of [".wh.a.txt", "dir/.wh.b.txt", "gone/.wh..wh..opq"]) {
      const status = lstatSync(join(tree, mark));
      expect([status.isFile(), status.size], mark).toEqual([true, 0]);
    }
    expect(await probe.names(workspace.at("/gone"))).toEqual(["new.txt"]);
  });

  test("L-05 marks without a name, or for the directory and its parent, are never interpreted", async () => {
    const { probe } = arena;
    const workspace = await open({ dir: { "a.txt": "a", sub: { "b.txt": "b" } } });
    expect(await probe.errnoOf("writeFile", workspace.at("/dir/sub/new"), "new")).toBe("OK");
    for (const directory of ["tree", "tree/dir", "tree/dir/sub"]) {
      for (const mark of [".wh.", ".wh..", ".wh..."]) writeFileSync(join(workspace.delta, directory, mark), "");
    }
    await workspace.remount();
    expect(await probe.names(workspace.mountPoint)).toEqual(["dir"]);
    expect(await probe.names(workspace.at("/dir"))).toEqual(["a.txt", "sub"]);
    expect(await probe.names(workspace.at("/dir/sub"))).toEqual(["b.txt", "new"]);
  });

  test("L-07 copy-up keeps mode, times, owner and extended attributes", async () => {
    const { probe } = arena;
    const workspace = await open({
      "plain.txt": file({ content: "plain", mode: 0o640, mtime: 1_234_567_890 }),
      "tool.sh": file({ content: "tool", mode: 0o755, mtime: 1_234_567_891 }),
    });
    let attributes = false;
    workspace.onHost((lower) => {
      const path = cString(join(lower, "plain.txt"));
      attributes = syscall("setxattr", path, cString("user.note"), Buffer.from("kept"), 4, 0).errno === "OK";
    });
    await workspace.remount();
    const before = { plain: await stat(workspace.at("/plain.txt")), tool: await stat(workspace.at("/tool.sh")) };
    expect(before.plain.mode).toBe(S.IFREG | 0o640);
    const errnos = await probe.errnos([
      ["tryOpen", workspace.at("/plain.txt"), O.RDWR],
      ["fchmodat", workspace.at("/tool.sh"), 0o711],
    ]);
    expect(errnos).toEqual(["OK", "OK"]);
    for (const again of [false, true]) {
      if (again) await workspace.remount();
      const { mode, uid, gid, size, mtimeNs } = before.plain;
      expect(await stat(workspace.at("/plain.txt"))).toMatchObject({ mode, uid, gid, size, mtimeNs });
      expect(await stat(workspace.at("/tool.sh"))).toMatchObject({
        mode: S.IFREG | 0o711,
        mtimeNs: before.tool.mtimeNs,
      });
      if (attributes) {
        const { data } = await probe.call("getxattr", workspace.at("/plain.txt"), "user.note");
        expect(Buffer.from(data ?? []).toString()).toBe("kept");
      }
    }
    const written = await probe.errnos([["writeFile", workspace.at("/plain.txt"), "+", O.WRONLY | O.APPEND]]);
    expect(written).toEqual(["OK"]);
    const after = await stat(workspace.at("/plain.txt"));
    expect(after).toMatchObject({ mode: before.plain.mode, size: 6 });
    expect(after.mtimeNs).toBeGreaterThan(before.plain.mtimeNs);
    expect(readdirSync(join(workspace.delta, "work"))).toEqual([]);
  });

  test("L-07 copy-up keeps large content and holes", async () => {
    const { probe } = arena;
    const content = Buffer.alloc(3_000_001, "0123456789abcdef");
    const workspace = await open({ "large.bin": content, "sparse.bin": "" });
    workspace.onHost((lower) => {
      const path = cString(join(lower, "sparse.bin"));
      expect(syscall("truncate", path, 64 << 20).errno).toBe("OK");
    });
    await workspace.remount();
    expect(
      await probe.errnos([
        ["writeFile", workspace.at("/large.bin"), "!", O.WRONLY | O.APPEND],
        ["writeFile", workspace.at("/sparse.bin"), "!", O.WRONLY | O.APPEND],
      ]),
    ).toEqual(["OK", "OK"]);
    const { data } = await probe.call("readFile", workspace.at("/large.bin"));
    expect(Buffer.from(data ?? []).equals(Buffer.concat([content, Buffer.from("!")]))).toBe(true);
    const sparse = await stat(workspace.at("/sparse.bin"));
    expect(sparse.size).toBe((64 << 20) + 1);
    expect(lstatSync(join(workspace.delta, "tree/sparse.bin")).blocks * 512).toBeLessThan(1 << 20);
  });

  for (const passthrough of [true, false]) {
    test(`L-08 a reader that opened before the copy-up sees what is written, ${passthrough ? "with" : "without"} passthrough`, async () => {
      const { probe } = arena;
      const workspace = await open(
        { "a.txt": "before", "b.txt": "x".repeat(200_000), "c.txt": "before" },
        { passthrough },
      );
      const { ret: reader } = await probe.call("openat", workspace.at("/a.txt"), O.RDONLY);
      const { ret: big } = await probe.call("openat", workspace.at("/b.txt"), O.RDONLY);
      expect(await textAt(reader)).toBe("before");
      const { ret: mapping } = await probe.call("mmap", big, 4096, PROT.READ, MAP.SHARED);
      expect(Buffer.from((await probe.call("peek", mapping, 3)).data ?? []).toString()).toBe("xxx");
      const { ret: writer } = await probe.call("openat", workspace.at("/a.txt"), O.RDWR);
      expect(await probe.errnoOf("pwrite", writer, "after!", 0)).toBe("OK");
      expect(await textAt(reader)).toBe("after!");
      expect(await probe.errnoOf("pwrite", writer, "again and longer", 0)).toBe("OK");
      expect(await textAt(reader)).toBe("again and longer");
      expect(await probe.errnoOf("truncate", workspace.at("/a.txt"), 5)).toBe("OK");
      expect(await textAt(reader)).toBe("again");
      expect(await probe.errnoOf("writeFile", workspace.at("/b.txt"), "new", O.WRONLY)).toBe("OK");
      expect((await textAt(big)).slice(0, 6)).toBe("newxxx");
      const { stat: held } = await probe.call("fstatat", { at: reader, path: "" }, AT.EMPTY_PATH);
      expect(held?.size).toBe(5);
      expect(held?.ino).toBe((await stat(workspace.at("/a.txt"))).ino);
      const { ret: later } = await probe.call("openat", workspace.at("/c.txt"), O.RDONLY);
      expect(await probe.errnoOf("fchmodat", workspace.at("/c.txt"), 0o600)).toBe("OK");
      expect(await probe.errnoOf("writeFile", workspace.at("/c.txt"), "after")).toBe("OK");
      expect(await textAt(later)).toBe("after");
      await probe.batch([
        ["munmap", mapping, 4096],
        ...[reader, big, writer, later].map((fd) => ["close", fd] as const),
      ]);
    });
  }

  test("L-08 a reader of a large file sees what is written after it opened", async () => {
    const { probe } = arena;
    const workspace = await open({ "large.bin": Buffer.alloc(17 << 20, "x") });
    const { ret: reader } = await probe.call("openat", workspace.at("/large.bin"), O.RDONLY);
    expect((await textAt(reader)).slice(0, 4)).toBe("xxxx");
    expect(await probe.errnoOf("writeFile", workspace.at("/large.bin"), "new", O.WRONLY)).toBe("OK");
    expect((await textAt(reader)).slice(0, 4)).toBe("newx");
    await probe.call("close", reader);
  });

  test("L-07 a large file can be renamed or removed while it is copied up", async () => {
    const { probe } = arena;
    const size = 40 << 20;
    const names = ["moved", "removed", "read"];
    const workspace = await open(Object.fromEntries(names.map((name) => [name, Buffer.alloc(size, name)])));
    const other = await arena.anotherProbe();
    const append = (name: string) => other.errnoOf("writeFile", workspace.at(`/${name}`), "+", O.WRONLY | O.APPEND);
    const together = [
      await Promise.all([
        append("moved"),
        probe.errnoOf("renameat2", workspace.at("/moved"), workspace.at("/new-name")),
      ]),
      await Promise.all([append("removed"), probe.errnoOf("unlinkat", workspace.at("/removed"))]),
      await Promise.all([append("read"), probe.errnoOf("readFile", workspace.at("/read"))]),
    ];
    // Whoever comes second may find the name gone.
    const [moving, removing, reading] = together;
    expect(moving?.[1]).toBe("OK");
    expect(removing?.[1]).toBe("OK");
    expect(reading).toEqual(["OK", "OK"]);
    for (const errno of [moving?.[0], removing?.[0]]) expect(["OK", "ENOENT", "ESTALE"]).toContain(errno);
    for (const again of [false, true]) {
      if (again) await workspace.remount();
      expect(await probe.names(workspace.mountPoint)).toEqual(["new-name", "read"]);
      expect((await stat(workspace.at("/new-name"))).size).toBe(size + (moving?.[0] === "OK" ? 1 : 0));
      expect((await stat(workspace.at("/read"))).size).toBe(size + 1);
    }
    expect(readdirSync(join(workspace.delta, "work"))).toEqual([]);
  });

  test("L-09 hard links made in the workspace are real", async () => {
    const { probe } = arena;
    const workspace = await open({ "codebase.txt": "codebase", dir: {} });
    const errnos = await probe.errnos([
      ["writeFile", workspace.at("/own.txt"), "own"],
      ["linkat", workspace.at("/own.txt"), workspace.at("/dir/own-too.txt")],
      ["linkat", workspace.at("/codebase.txt"), workspace.at("/dir/codebase-too.txt")],
      ["writeFile", workspace.at("/dir/own-too.txt"), "changed through the link"],
      ["writeFile", workspace.at("/codebase.txt"), "+", O.WRONLY | O.APPEND],
    ]);
    expect(errnos).toEqual(Array(5).fill("OK"));
    for (const again of [false, true]) {
      if (again) await workspace.remount();
      expect(await probe.text(workspace.at("/own.txt"))).toBe("changed through the link");
      expect(await probe.text(workspace.at("/dir/codebase-too.txt"))).toBe("codebase+");
      for (const [one, two] of [
        ["/own.txt", "/dir/own-too.txt"],
        ["/codebase.txt", "/dir/codebase-too.txt"],
      ] as const) {
        const [first, second] = [await stat(workspace.at(one)), await stat(workspace.at(two))];
        expect([first.nlink, second.nlink, first.ino], one).toEqual([2, 2, second.ino]);
      }
    }
    expect(await probe.errnoOf("unlinkat", workspace.at("/own.txt"))).toBe("OK");
    expect((await stat(workspace.at("/dir/own-too.txt"))).nlink).toBe(1);
  });

  test("L-11 a daemon that is killed in the middle of copy-ups leaves each file old or new", async () => {
    for (let round = 0; round < rounds(2); round++) {
      const old = Buffer.alloc(200_000, "old ");
      const workspace = await open(Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`f${index}`, old])));
      const writer = await arena.anotherProbe();
      const writing = writer
        .batch(
          Array.from(
            { length: 40 },
            (_, index) => ["writeFile", workspace.at(`/f${index}`), "+", O.WRONLY | O.APPEND] as const,
          ),
        )
        .catch((error: unknown) => (error instanceof PeerEnded ? [] : Promise.reject(error)));
      await aWhile(3 + 7 * round);
      await workspace.recover();
      await writing;
      for (let index = 0; index < 40; index++) {
        const { data, errno } = await arena.probe.call("readFile", workspace.at(`/f${index}`));
        const content = Buffer.from(data ?? []);
        expect(errno).toBe("OK");
        expect(content.subarray(0, old.length).equals(old), `f${index} has ${content.length} bytes`).toBe(true);
        expect(["", "+"]).toContain(content.subarray(old.length).toString());
      }
      expect(readdirSync(join(workspace.delta, "work"))).toEqual([]);
      expect(await arena.probe.errnoOf("writeFile", workspace.at("/after"), "works")).toBe("OK");
    }
  });

  test("L-11 leftovers in the work directory are gone after a mount", async () => {
    const workspace = await open({ "a.txt": "a" });
    await workspace.kill();
    const { uid, gid } = lstatSync(workspace.delta);
    const leftovers = ["work/leftover", "work/left", "work/left/over"].map((path) => join(workspace.delta, path));
    const [one = "", directory = "", two = ""] = leftovers;
    writeFileSync(one, "half a file");
    mkdirSync(directory, { mode: 0o700 });
    writeFileSync(two, "half a file");
    for (const path of leftovers) chownSync(path, uid, gid);
    await workspace.recover();
    expect(readdirSync(join(workspace.delta, "work"))).toEqual([]);
    expect(await arena.probe.names(workspace.mountPoint)).toEqual(["a.txt"]);
  });

  test("L-11 the dead mount of a killed daemon can be cleaned up, and nothing else can", async () => {
    const workspace = await open({ "a.txt": "a" });
    expect(await cleanStaleMount(workspace.lower)).toBe(false);
    await workspace.kill();
    expect(await arena.probe.errnoOf("fstatat", workspace.at("/a.txt"))).toBe("ENOTCONN");
    expect(await workspace.recover()).toBe(true);
    expect(await arena.probe.text(workspace.at("/a.txt"))).toBe("a");
    expect(readFileSync("/proc/self/mountinfo", "utf8").split(` ${workspace.mountPoint} `)).toHaveLength(2);
  });

  test("L-12 inode numbers stay for the life of the mount, across copy-up, rename and forgetting", async () => {
    const { probe } = arena;
    const workspace = await open({ "a.txt": "a", "b.txt": "b", dir: { "c.txt": "c", sub: {} } });
    const paths = ["/a.txt", "/b.txt", "/dir", "/dir/c.txt", "/dir/sub", ""];
    const numbers = async () =>
      Object.fromEntries(
        await Promise.all(paths.map(async (path) => [path, (await stat(workspace.at(path))).ino] as const)),
      );
    const before = await numbers();
    expect(new Set(Object.values(before)).size).toBe(paths.length);
    expect(
      await probe.errnos([
        ["writeFile", workspace.at("/a.txt"), "changed"],
        ["fchmodat", workspace.at("/dir"), 0o700],
        ["utimensat", workspace.at("/dir/c.txt"), "now"],
      ]),
    ).toEqual(["OK", "OK", "OK"]);
    expect(await numbers()).toEqual(before);
    workspace.forgetNames();
    expect(await numbers()).toEqual(before);
    const listed = (await probe.call("list", workspace.mountPoint)).entries ?? [];
    for (const entry of listed.filter(({ name }) => !name.startsWith(".")))
      expect(entry.ino).toBe(before[`/${entry.name}`]);
    expect(await probe.errnoOf("renameat2", workspace.at("/a.txt"), workspace.at("/dir/renamed"))).toBe("OK");
    expect((await stat(workspace.at("/dir/renamed"))).ino).toBe(before["/a.txt"]);
  });

  test("L-13 the mount is nosuid and nodev", async () => {
    const workspace = await open({});
    const line = (await arena.probe.text("/proc/self/mountinfo"))
      .split("\n")
      .find((text) => text.includes(` ${workspace.mountPoint} `));
    const options = line?.split(" ")[5]?.split(",");
    expect(options).toEqual(expect.arrayContaining(["nosuid", "nodev"]));
  });

  test("L-14 setuid and setgid bits of files are dropped, from the codebase and from the agent", async () => {
    const { probe } = arena;
    const workspace = await open({
      suid: file({ content: "x", mode: 0o4755 }),
      sgid: file({ content: "x", mode: 0o2755 }),
      both: file({ content: "x", mode: 0o6755 }),
    });
    const special = async (path: string) => (await stat(workspace.at(path))).mode & 0o6000;
    for (const path of ["/suid", "/sgid", "/both"]) expect(await special(path), path).toBe(0);
    const made = await probe.errnos([
      ["writeFile", workspace.at("/made"), "x", O.WRONLY | O.CREAT, 0o6755],
      ["writeFile", workspace.at("/changed"), "x"],
      ["mknodat", workspace.at("/node"), S.IFREG | 0o6755],
    ]);
    expect(made[0]).toBe("OK");
    expect(["OK", "EPERM"]).toContain(await probe.errnoOf("fchmodat", workspace.at("/changed"), 0o6755));
    expect(["OK", "EPERM"]).toContain(await probe.errnoOf("fchmodat", workspace.at("/suid"), 0o4711));
    for (const path of ["/made", "/changed", "/node", "/suid"]) expect(await special(path), path).toBe(0);
    await workspace.remount();
    for (const path of ["/made", "/changed", "/node", "/suid", "/both"]) expect(await special(path), path).toBe(0);
    for (const name of readdirSync(join(workspace.delta, "tree"))) {
      expect(lstatSync(join(workspace.delta, "tree", name)).mode & 0o6000, name).toBe(0);
    }
  });

  test("L-16 the quota in bytes is EDQUOT and an event, and freeing makes room again", async () => {
    const { probe } = arena;
    const workspace = await open({ "old.txt": "x".repeat(700_000) }, { quota: { bytes: 1 << 20 } });
    expect(await probe.errnoOf("writeFile", workspace.at("/fits"), Buffer.alloc(500_000, "f"))).toBe("OK");
    expect(await probe.errnoOf("writeFile", workspace.at("/too-much"), Buffer.alloc(800_000, "f"))).toBe("EDQUOT");
    expect(await probe.errnoOf("writeFile", workspace.at("/old.txt"), "+", O.WRONLY | O.APPEND), "copy-up counts").toBe(
      "EDQUOT",
    );
    await eventually(() => expect(workspace.events().map((event) => event.kind)).toContain("quota_exceeded"));
    expect(await probe.text(workspace.at("/old.txt"))).toBe("x".repeat(700_000));
    expect(
      await probe.errnos([
        ["unlinkat", workspace.at("/fits")],
        ["unlinkat", workspace.at("/too-much")],
      ]),
    ).toEqual(["OK", "OK"]);
    expect(await probe.errnoOf("writeFile", workspace.at("/fits-again"), Buffer.alloc(500_000, "f"))).toBe("OK");
    await workspace.remount();
    expect(
      await probe.errnoOf("writeFile", workspace.at("/more"), Buffer.alloc(800_000, "f")),
      "counted again at mount",
    ).toBe("EDQUOT");
  });

  test("L-16 the quota holds for every way to make a file larger", async () => {
    const { probe } = arena;
    const workspace = await open({}, { quota: { bytes: 1 << 20 } });
    expect(await probe.errnoOf("writeFile", workspace.at("/f"), "f")).toBe("OK");
    const { ret: fd } = await probe.call("openat", workspace.at("/f"), O.RDWR);
    const errnos = await probe.errnos([
      ["fallocate", fd, 0, 0, 8 << 20],
      ["pwrite", fd, Buffer.alloc(2 << 20, "f"), 0],
    ]);
    for (const errno of errnos.slice(0, 1)) expect(["EDQUOT", "EOPNOTSUPP"]).toContain(errno);
    // A write may be cut at the quota; what must not happen is that all of it is stored.
    await probe.call("pwrite", fd, Buffer.alloc(2 << 20, "f"), 0);
    await probe.call("close", fd);
    expect(lstatSync(join(workspace.delta, "tree/f")).blocks * 512).toBeLessThanOrEqual((1 << 20) + 65_536);
  });

  test("L-17 the quota in files is EDQUOT and an event", async () => {
    const { probe } = arena;
    const workspace = await open({}, { quota: { files: 20 } });
    const errnos = await probe.errnos(
      Array.from({ length: 40 }, (_, index) => ["writeFile", workspace.at(`/f${index}`), "x"] as const),
    );
    const allowed = errnos.filter((errno) => errno === "OK").length;
    expect(allowed).toBeGreaterThanOrEqual(18);
    expect(allowed).toBeLessThanOrEqual(20);
    expect(new Set(errnos.slice(allowed))).toEqual(new Set(["EDQUOT"]));
    const others = await probe.errnos([
      ["mkdirat", workspace.at("/d")],
      ["symlinkat", "x", workspace.at("/s")],
      ["mknodat", workspace.at("/n"), S.IFREG | 0o600],
    ]);
    expect(new Set(others)).toEqual(new Set(["EDQUOT"]));
    await eventually(() => expect(workspace.events().map((event) => event.kind)).toContain("quota_exceeded"));
    expect(
      await probe.errnos([
        ["unlinkat", workspace.at("/f0")],
        ["mkdirat", workspace.at("/d")],
      ]),
    ).toEqual(["OK", "OK"]);
  });

  test("L-17 unnamed files and further names are no way around the quota in files", async () => {
    const { probe } = arena;
    const workspace = await open({}, { quota: { files: 20 } });
    const errnos: string[] = [];
    for (let index = 0; index < 60; index++) {
      const { ret: fd, errno } = await probe.call("openat", workspace.mountPoint, O.TMPFILE | O.RDWR);
      if (fd < 0) {
        errnos.push(errno);
        continue;
      }
      errnos.push(await probe.errnoOf("linkat", `/proc/self/fd/${fd}`, workspace.at(`/t${index}`), AT.SYMLINK_FOLLOW));
      await probe.call("close", fd);
    }
    expect((await probe.names(workspace.mountPoint)).length).toBeLessThanOrEqual(20);
    expect(errnos.filter((errno) => !["OK", "EDQUOT", "EOPNOTSUPP"].includes(errno))).toEqual([]);
    await probe.call("writeFile", workspace.at("/one"), "x");
    await probe.batch(
      Array.from({ length: 60 }, (_, index) => ["linkat", workspace.at("/t0"), workspace.at(`/l${index}`)] as const),
    );
    expect((await probe.names(workspace.mountPoint)).length).toBeLessThanOrEqual(20);
  });

  test("L-18 a mount without a delta is read-only for everybody", async () => {
    const { probe } = arena;
    const workspace = await open({ "a.txt": "a", dir: {} }, { delta: false });
    expect(await probe.text(workspace.at("/a.txt"))).toBe("a");
    const errnos = await probe.errnos([
      ["tryOpen", workspace.at("/a.txt"), O.RDWR],
      ["tryOpen", workspace.at("/a.txt"), O.RDONLY | O.TRUNC],
      ["writeFile", workspace.at("/new"), "x"],
      ["mkdirat", workspace.at("/new")],
      ["symlinkat", "x", workspace.at("/new")],
      ["unlinkat", workspace.at("/a.txt")],
      ["rmdir", workspace.at("/dir")],
      ["renameat2", workspace.at("/a.txt"), workspace.at("/b.txt")],
      ["fchmodat", workspace.at("/a.txt"), 0o600],
      ["utimensat", workspace.at("/a.txt"), "now"],
      ["truncate", workspace.at("/a.txt"), 0],
    ]);
    expect(errnos).toEqual(Array(11).fill("EROFS"));
  });
});
