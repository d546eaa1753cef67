import type { Rule } from "@agentfense/permission";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { IN, O, OK, RENAME } from "../../../support/constants.ts";
import { eventually } from "../../../support/eventually.ts";
import { link } from "../../../support/tree.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { creationsAt, usesOf } from "../attacks.ts";
import { CANARY, HIDDEN_NAMES, RULES } from "../codebase.ts";
import { expectOnly, outcomesOf, outcomesOfTwins } from "../outcomes.ts";
import { OWN, OWN_DIRECTORY, openTwins } from "../twins.ts";

describeAttack("the levels, operation by operation", (arena) => {
  test("P-18 hidden is nonexistent in every operation", async () => {
    const twins = await openTwins(arena);
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) => [
      ...HIDDEN_NAMES.flatMap((name) => usesOf(twin.at(`/work/${name}`))),
      ["renameat2", twin.at("/work/.env"), twin.at("/work/x")],
    ]);
    expectOnly(outcomes, "ENOENT");
    const listings = Object.values(twins).map((twin) => arena.probe.names(twin.at("/work")));
    const [there, absent] = await Promise.all(listings);
    expect(there).toEqual(absent);
  });

  test("P-19 hidden entries leave no trace in what stat, readdir and statfs report", async () => {
    const { probe } = arena;
    const twins = await openTwins(arena, { quota: { bytes: 10 << 20, files: 1000 } });
    const trace = async (twin: TestWorkspace) => {
      const answers = await probe.batch([
        ["fstatat", twin.mountPoint],
        ["fstatat", twin.at("/src")],
        ["list", twin.at("/src")],
        ["list", twin.at("/work")],
        ["statfs", twin.mountPoint],
      ]);
      return answers.map(({ stat, entries, statfs }) => ({
        attributes: stat && [stat.ino, stat.nlink, stat.size, stat.blocks],
        offsets: entries?.map((entry) => entry.off),
        // What the agent made itself has numbers of its own; the codebase's must not differ.
        numbers: entries
          ?.filter((entry) => !entry.name.startsWith(".") && !entry.name.startsWith("own"))
          .map((entry) => `${entry.name} ${entry.ino}`)
          .sort(),
        statfs,
      }));
    };
    expect(await trace(twins.there)).toEqual(await trace(twins.absent));
  });

  test("P-20 creating at a path whose level is not write is refused, there or not", async () => {
    const twins = await openTwins(arena);
    const paths = ["/new", "/src/new", "/docs/new", "/secrets/new", ...HIDDEN_NAMES.map((name) => `/work/${name}`)];
    expectOnly(
      await outcomesOfTwins(arena.probe, twins, (twin) =>
        paths.flatMap((path) => creationsAt(twin.at(path), twin.at(OWN), twin.at(OWN_DIRECTORY))),
      ),
      "EACCES",
    );
  });

  test("P-21 view: stat, list and readlink work, opening does not", async () => {
    const { probe } = arena;
    const lower = { dir: { "file.txt": "content", link: link("file.txt"), sub: { "below.txt": "below" } } };
    const workspace = await arena.open({ lower, rules: [{ pattern: "/dir/**", permission: "view" }] });
    expect(await probe.names(workspace.at("/dir"))).toEqual(["file.txt", "link", "sub"]);
    expect(await probe.names(workspace.at("/dir/sub"))).toEqual(["below.txt"]);
    expect((await probe.call("readlinkat", workspace.at("/dir/link"))).text).toBe("file.txt");
    expect((await probe.call("fstatat", workspace.at("/dir/file.txt"))).stat?.size).toBe(7);
    const outcomes = await outcomesOf(probe, workspace, [
      ["tryOpen", workspace.at("/dir/file.txt"), O.RDONLY],
      ["tryOpen", workspace.at("/dir/link"), O.RDONLY],
      ["tryOpen", workspace.at("/dir/sub/below.txt"), O.RDWR],
    ]);
    expectOnly(outcomes, "EACCES");
  });

  test("P-22 read: content can be read, every change is refused", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    expect(await probe.text(there.at("/src/app.ts"))).toBe("export const app = 1;\n");
    const outcomes = await outcomesOf(probe, there, [
      ["tryOpen", there.at("/src/app.ts"), O.RDWR],
      ["truncate", there.at("/src/app.ts"), 0],
      ["fchmodat", there.at("/src/app.ts"), 0o600],
      ["utimensat", there.at("/src/app.ts"), "now"],
      ["unlinkat", there.at("/src/app.ts")],
      ["renameat2", there.at("/src/app.ts"), there.at("/work/app.ts")],
      ["linkat", there.at("/src/app.ts"), there.at("/work/app.ts")],
      ["setxattr", there.at("/src/app.ts"), "user.note", "x"],
      ["mkdirat", there.at("/src/new")],
      ["rmdir", there.at("/src/lib")],
    ]);
    expectOnly(outcomes, "EACCES");
  });

  test("P-23 access and the mode bits agree with the rules and with each other", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const facts: Record<string, string> = {};
    for (const path of [
      "/work/notes.txt",
      "/README.md",
      "/run.sh",
      "/docs/guide.md",
      "/docs/tool.sh",
      "/work",
      "/src",
      "/docs",
      "/secrets",
      "",
    ]) {
      const { stat } = await probe.call("fstatat", there.at(path));
      const bits = ((stat?.mode ?? 0) >> 6) & 7;
      const errnos = await probe.errnos([OK.R, OK.W, OK.X].map((mode) => ["faccessat", there.at(path), mode] as const));
      const allowed = errnos.map((errno, index) => (errno === "OK" ? "rwx"[index] : "-")).join("");
      facts[path === "" ? "/" : path] = allowed;
      expect([4, 2, 1].map((bit, index) => ((bits & bit) === 0 ? "-" : "rwx"[index])).join(""), `mode of ${path}`).toBe(
        allowed,
      );
    }
    expect(facts).toEqual({
      "/work/notes.txt": "rw-",
      "/README.md": "r--",
      "/run.sh": "r-x",
      "/docs/guide.md": "---",
      "/docs/tool.sh": "---",
      "/work": "rwx",
      "/src": "r-x",
      "/docs": "r-x",
      "/secrets": "r-x",
      "/": "r-x",
    });
  });

  test("P-24 a file is renamed or linked only with the right to write at both paths", async () => {
    const { probe } = arena;
    const workspace = await arena.open({
      lower: { a: { "w.txt": "w", "r.txt": "r" }, b: {} },
      rules: [
        { pattern: "/**", permission: "read" },
        { pattern: "/a/**", permission: "write" },
        { pattern: "/a/r.txt", permission: "read" },
        { pattern: "/a/v*", permission: "view", priority: 1 },
      ],
    });
    const errnos = await probe.errnos([
      ["linkat", workspace.at("/a/w.txt"), workspace.at("/a/w2.txt")],
      ["renameat2", workspace.at("/a/w.txt"), workspace.at("/a/w3.txt")],
      ["renameat2", workspace.at("/a/w3.txt"), workspace.at("/b/w.txt")],
      ["renameat2", workspace.at("/a/r.txt"), workspace.at("/a/r2.txt")],
      ["linkat", workspace.at("/a/r.txt"), workspace.at("/a/r2.txt")],
      ["linkat", workspace.at("/a/w3.txt"), workspace.at("/b/w.txt")],
      ["renameat2", workspace.at("/a/w3.txt"), workspace.at("/a/v.txt")],
      ["linkat", workspace.at("/a/w3.txt"), workspace.at("/a/v.txt")],
    ]);
    expect(errnos).toEqual(["OK", "OK", ...Array(6).fill("EACCES")]);
  });

  test("P-24 each name of an own hard link follows the rule of its own path", async () => {
    const { probe } = arena;
    const rules: Rule[] = [{ pattern: "/**", permission: "write" }];
    const workspace = await arena.open({ lower: { a: {}, b: {} }, rules });
    const made = await probe.errnos([
      ["writeFile", workspace.at("/a/one"), "shared"],
      ["linkat", workspace.at("/a/one"), workspace.at("/b/two")],
    ]);
    expect(made).toEqual(["OK", "OK"]);
    await workspace.updateRules([...rules, { pattern: "/b/two", permission: "none" }]);
    expect(await probe.names(workspace.at("/b"))).toEqual([]);
    expect(await probe.errnoOf("fstatat", workspace.at("/b/two"))).toBe("ENOENT");
    expect(await probe.names(workspace.at("/a"))).toEqual(["one"]);
    expect(await probe.text(workspace.at("/a/one"))).toBe("shared");
    expect((await probe.call("fstatat", workspace.at("/a/one"))).stat?.nlink, "the hidden name is not counted").toBe(1);
  });

  test("P-25 a directory of the codebase answers EXDEV to every rename, also a changed or emptied one", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena, {
      extra: { work: { sub: { "inner.txt": "inner" }, empty: {}, deep: { er: {} } } },
    });
    const changed = await probe.errnos([
      ["writeFile", there.at("/work/sub/new.txt"), "new"],
      ["fchmodat", there.at("/work/empty"), 0o700],
      ["rmdir", there.at("/work/deep/er")],
    ]);
    expect(changed).toEqual(["OK", "OK", "OK"]);
    const outcomes = await outcomesOf(
      probe,
      there,
      ["sub", "empty", "deep"].flatMap((name) => [
        ["renameat2", there.at(`/work/${name}`), there.at("/work/moved")],
        ["renameat2", there.at(`/work/${name}`), there.at("/work/moved"), RENAME.NOREPLACE],
        ["renameat2", there.at(`/work/${name}`), there.at(OWN_DIRECTORY), RENAME.EXCHANGE],
      ]),
    );
    expectOnly(outcomes, "EXDEV");
    const afterwards = await outcomesOf(probe, there, [
      ["mkdirat", there.at("/work/sub/later")],
      ["unlinkat", there.at("/work/sub/inner.txt")],
      ["writeFile", there.at("/work/empty/later"), "later"],
      ["mkdirat", there.at("/work/deep/later")],
      ["writeFile", there.at("/work/later"), "later"],
    ]);
    expectOnly(afterwards, "OK");
  });

  test("P-25 a refused rename of a directory that is in both layers leaves it usable", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const outcomes = await outcomesOf(probe, there, [
      ["writeFile", there.at("/work/sub/new.txt"), "new"],
      ["renameat2", there.at("/work/sub"), there.at("/src/moved")],
      ["readFile", there.at("/work/sub/inner.txt")],
      ["mkdirat", there.at("/work/sub/made")],
      ["renameat2", there.at("/work"), there.at("/moved")],
      ["readFile", there.at("/work/kept.txt")],
      ["mkdirat", there.at("/work/made")],
    ]);
    expect(Object.values(outcomes)).toEqual([
      "OK",
      "EACCES",
      expect.stringMatching(/^OK/),
      "OK",
      "EACCES",
      expect.stringMatching(/^OK/),
      "OK",
    ]);
    const moved = await probe.call("run", "mv", [there.at("/work/sub"), there.at("/work/elsewhere")]);
    expect({ status: moved.status, stderr: moved.stderr }).toEqual({ status: 0, stderr: "" });
    expect(await probe.names(there.at("/work/elsewhere"))).toEqual(["inner.txt", "made", "new.txt"]);
  });

  test("P-26 directories that exist only in the delta move freely, with all they hold", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const errnos = await probe.errnos([
      ["mkdirat", there.at(`${OWN_DIRECTORY}/deep`)],
      ["writeFile", there.at(`${OWN_DIRECTORY}/deep/file`), "deep"],
      ["renameat2", there.at(OWN_DIRECTORY), there.at("/work/sub/moved")],
      ["renameat2", there.at("/work/sub/moved"), there.at("/work/again")],
      ["mkdirat", there.at("/work/empty")],
      ["renameat2", there.at("/work/again"), there.at("/work/empty")],
      ["mkdirat", there.at("/work/other")],
      ["renameat2", there.at("/work/other"), there.at("/work/empty"), RENAME.EXCHANGE],
    ]);
    expect(errnos).toEqual(Array(8).fill("OK"));
    for (const again of [false, true]) {
      if (again) await there.remount();
      expect(await probe.text(there.at("/work/other/deep/file"))).toBe("deep");
      expect(await probe.names(there.at("/work/other"))).toEqual(["child.txt", "deep"]);
      expect(await probe.names(there.at("/work/empty"))).toEqual([]);
      expect(await probe.errnoOf("fstatat", there.at("/work/again"))).toBe("ENOENT");
    }
  });

  test("P-26 a directory made where one of the codebase was removed is the agent's own and moves too", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const errnos = await probe.errnos([
      ["unlinkat", there.at("/work/sub/inner.txt")],
      ["rmdir", there.at("/work/sub")],
      ["mkdirat", there.at("/work/sub")],
      ["writeFile", there.at("/work/sub/mine"), "mine"],
    ]);
    expect(errnos).toEqual(Array(4).fill("OK"));
    expect(["OK", "EXDEV"]).toContain(await probe.errnoOf("renameat2", there.at("/work/sub"), there.at("/work/moved")));
    const names = [...(await probe.names(there.at("/work"))), ...(await probe.names(there.at("/work/sub")))];
    expect(names).not.toContain("inner.txt");
  });

  test("P-27 rmdir of a directory whose visible content is gone neither reveals nor deletes what is hidden", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const errnos = await probe.errnos([
      ["rmdir", there.at("/work/sub")],
      ["unlinkat", there.at("/work/sub/inner.txt")],
      ["rmdir", there.at("/work/sub")],
      ["mkdirat", there.at("/work/sub")],
      ["fstatat", there.at("/work/sub/.env")],
    ]);
    expect(errnos).toEqual(["ENOTEMPTY", "OK", "OK", "OK", "ENOENT"]);
    expect(await probe.names(there.at("/work/sub"))).toEqual([]);
    expect((await probe.call("scan", there.mountPoint, [CANARY.hidden])).found).toEqual([]);
    there.assertLowerUntouched();
  });

  test("P-28 new rules hold for every path operation and every new open at once", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const level = (permission: Rule["permission"]): Rule[] => [
      ...RULES,
      { pattern: "/src/app.ts", permission, priority: 500 },
    ];
    const answers: Record<string, string[]> = {};
    for (const permission of ["write", "none", "read", "view", "write", "view", "none", "read"] as const) {
      await there.updateRules(level(permission));
      const errnos = await probe.errnos([
        ["fstatat", there.at("/src/app.ts")],
        ["tryOpen", there.at("/src/app.ts"), O.RDONLY],
        ["tryOpen", there.at("/src/app.ts"), O.WRONLY],
      ]);
      const listed = (await probe.names(there.at("/src"))).includes("app.ts") ? "listed" : "not listed";
      expect(answers[permission] ?? [...errnos, listed], permission).toEqual([...errnos, listed]);
      answers[permission] = [...errnos, listed];
    }
    expect(answers).toEqual({
      none: ["ENOENT", "ENOENT", "ENOENT", "not listed"],
      view: ["OK", "EACCES", "EACCES", "listed"],
      read: ["OK", "OK", "EACCES", "listed"],
      write: ["OK", "OK", "OK", "listed"],
    });
  });

  test("P-28 a process that works in a directory goes on working there under new rules", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const { ret: inotify } = await probe.call("inotify_init1", IN.NONBLOCK);
    await probe.batch([
      ["chdir", there.at("/work/sub")],
      ["inotify_add_watch", inotify, there.at("/work/sub"), IN.CREATE],
    ]);
    await there.updateRules([...RULES, { pattern: "/src/**", permission: "none", priority: 300 }]);
    const answers = await probe.batch([
      ["getcwd"],
      ["fstatat", "inner.txt"],
      ["writeFile", "from-inside", "x"],
      ["mkdirat", "made-inside"],
      ["fstatat", "../notes.txt"],
      ["list", "."],
      ["writeFile", there.at("/work/sub/from-outside"), "x"],
    ]);
    const { events } = await probe.call("inotifyEvents", inotify);
    await probe.batch([
      ["chdir", "/"],
      ["close", inotify],
    ]);
    expect(answers.map((answer) => answer.errno)).toEqual(Array(7).fill("OK"));
    expect(answers[0]?.text).toBe(there.at("/work/sub"));
    expect(events?.map((event) => event.name)).toEqual(["from-inside", "made-inside", "from-outside"]);
  });

  test("P-29 what is open keeps what it was opened for", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const { ret: reader } = await probe.call("openat", there.at("/src/app.ts"), O.RDONLY);
    const { ret: writer } = await probe.call("openat", there.at("/work/notes.txt"), O.RDWR);
    await there.updateRules([...RULES, { pattern: "/**", permission: "none", priority: 900 }]);
    const errnos = await probe.errnos([
      ["pread", reader, 10, 0],
      ["pwrite", writer, "kept", 0],
      ["fstatat", there.at("/work/notes.txt")],
    ]);
    await probe.batch([
      ["close", reader],
      ["close", writer],
    ]);
    expect(errnos).toEqual(["OK", "OK", "ENOENT"]);
    await there.updateRules(RULES);
    expect(await probe.text(there.at("/work/notes.txt"))).toBe("kepts\n");
  });

  for (const passthrough of [true, false]) {
    test(`P-29 what was opened before new rules and what is opened after are one file, ${passthrough ? "with" : "without"} passthrough`, async () => {
      const { probe } = arena;
      const rules: Rule[] = [{ pattern: "/**", permission: "write" }];
      const lower = { dir: { "changed.txt": "0123456789", "untouched.txt": "0123456789" } };
      const workspace = await arena.open({ lower, rules, passthrough });
      const descriptor = async (path: string, flags: number) =>
        (await probe.call("openat", workspace.at(path), flags)).ret;
      const text = async (fd: number) => Buffer.from((await probe.call("pread", fd, 100, 0)).data ?? []).toString();

      const before = await descriptor("/dir/changed.txt", O.RDWR);
      const reader = await descriptor("/dir/untouched.txt", O.RDONLY);
      await probe.call("pwrite", before, "a", 0);
      expect([await text(before), await text(reader)]).toEqual(["a123456789", "0123456789"]);
      await workspace.updateRules([...rules, { pattern: "/other", permission: "none" }]);
      const after = await descriptor("/dir/changed.txt", O.RDWR);
      const writer = await descriptor("/dir/untouched.txt", O.RDWR);
      expect([await text(after), await text(writer)]).toEqual(["a123456789", "0123456789"]);

      await probe.call("pwrite", before, "bb", 0);
      expect(await text(after), "written before, read after").toBe("bb23456789");
      await probe.call("pwrite", after, "ccc", 0);
      expect(await text(before), "written after, read before").toBe("ccc3456789");
      await probe.call("pwrite", writer, "dddd", 0);
      expect(await text(reader), "copied up after, read before").toBe("dddd456789");
      await probe.call("ftruncate", before, 2);
      expect(await text(after)).toBe("cc");
      // LOCK_EX | LOCK_NB
      expect(
        await probe.errnos([
          ["flock", before, 6],
          ["flock", after, 6],
        ]),
      ).toEqual(["OK", "EAGAIN"]);
      await probe.batch([before, reader, after, writer].map((fd) => ["close", fd] as const));
    });
  }

  test("P-30 a revocable mount checks its handles at each read and write, and does without passthrough", async () => {
    const { probe } = arena;
    const workspace = await arena.open({
      lower: { "a.txt": "content" },
      rules: [{ pattern: "/**", permission: "write" }],
      revocable: true,
    });
    expect(workspace.features.passthrough).toBe(false);
    const { ret: fd } = await probe.call("openat", workspace.at("/a.txt"), O.RDWR);
    const SEEK_DATA = 3;
    const all = () =>
      probe.errnos([
        ["pread", fd, 10, 0],
        ["lseek", fd, 0, SEEK_DATA],
        ["pwrite", fd, "c", 0],
      ]);
    const levels: Record<string, string[]> = { write: await all() };
    for (const permission of ["read", "view", "none", "write"] as const) {
      await workspace.updateRules([{ pattern: "/**", permission }]);
      levels[`then ${permission}`] = await all();
    }
    await probe.call("close", fd);
    const refused = expect.stringMatching(/^(EACCES|ENOENT|ESTALE)$/);
    expect(levels).toEqual({
      write: ["OK", "OK", "OK"],
      "then read": ["OK", "OK", "EACCES"],
      "then view": [refused, refused, refused],
      "then none": [refused, refused, refused],
      "then write": ["OK", "OK", "OK"],
    });
  });

  test("P-35 a refused operation is reported, and a name that is merely absent is not", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    await probe.batch([
      ["tryOpen", there.at("/src/app.ts"), O.RDWR],
      ["tryOpen", there.at("/docs/guide.md"), O.RDONLY],
      ["mkdirat", there.at("/work/.env.new")],
      ["fstatat", there.at("/work/merely-absent")],
    ]);
    await eventually(() =>
      expect(there.events().flatMap((event) => (event.kind === "permission_denied" ? [event.path] : []))).toEqual(
        expect.arrayContaining(["/src/app.ts", "/docs/guide.md", "/work/.env.new"]),
      ),
    );
    expect(there.events()).toContainEqual(
      expect.objectContaining({
        kind: "permission_denied",
        path: "/src/app.ts",
        level: "read",
        rule: 0,
        pid: probe.pid,
      }),
    );
    expect(JSON.stringify(there.events())).not.toContain("merely-absent");
  });
});
