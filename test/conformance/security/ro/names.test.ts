import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { AT, O, RENAME, S } from "../../../support/constants.ts";
import type { Call } from "../../../support/probe.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { creationsAt } from "../attacks.ts";
import { ALL_CANARIES, codebase, HIDDEN, RULES } from "../codebase.ts";
import { expectOnly, outcomesOf } from "../outcomes.ts";

const READ_FILES = ["/README.md", "/src/app.ts", "/src/lib/util.ts", "/work/kept.txt"] as const;

/** A writable directory with something of every level in it. */
const MIXED = {
  "free.txt": "free",
  "kept.txt": "kept",
  "shown.txt": "shown",
  ...HIDDEN,
  "empty.ro": {},
  sub: { "kept.txt": "kept below" },
};

const MIXED_RULES = [
  ...RULES,
  { pattern: "/mixed/**", permission: "write" },
  { pattern: "/mixed/**/kept.txt", permission: "read", priority: 1 },
  { pattern: "/mixed/shown.txt", permission: "view", priority: 1 },
  { pattern: "/mixed/empty.ro/**", permission: "read", priority: 1 },
] as const;

describeAttack("RO: removing, moving and replacing what is read-only", (arena) => {
  const open = async (): Promise<TestWorkspace> => {
    const workspace = await arena.open({
      lower: codebase({ hidden: true, extra: { mixed: MIXED, "empty.ro": {} } }),
      rules: MIXED_RULES,
    });
    const made = await arena.probe.errnos([
      ["writeFile", workspace.at("/work/own"), "own"],
      ["mkdirat", workspace.at("/work/own-dir")],
      ["writeFile", workspace.at("/work/own-dir/child"), "child"],
    ]);
    expect(made).toEqual(["OK", "OK", "OK"]);
    return workspace;
  };

  const onEach = async (workspace: TestWorkspace, rows: (path: string) => readonly Call[]) =>
    await outcomesOf(
      arena.probe,
      workspace,
      READ_FILES.flatMap((path) => rows(workspace.at(path))),
    );

  const expectInPlace = async (workspace: TestWorkspace): Promise<void> => {
    for (const path of READ_FILES) {
      expect(await arena.probe.text(workspace.at(path)), path).toBe(readFileSync(workspace.lower + path, "utf8"));
    }
    expect(await arena.probe.text(workspace.at("/mixed/kept.txt"))).toBe("kept");
    expect(await arena.probe.text(workspace.at("/mixed/sub/kept.txt"))).toBe("kept below");
    expect(await arena.probe.errnoOf("fstatat", workspace.at("/mixed/shown.txt"))).toBe("OK");
    expect((await arena.probe.call("scan", workspace.mountPoint, [...ALL_CANARIES, ".env"])).found).toEqual([]);
  };

  test("RO-04 unlink, and rmdir of an empty read-only directory, are refused", async () => {
    const workspace = await open();
    expectOnly(await onEach(workspace, (path) => [["unlinkat", path]]), "EACCES");
    const directories = ["/empty.ro", "/mixed/empty.ro", "/src", "/src/lib", "/docs"];
    expectOnly(
      await outcomesOf(
        arena.probe,
        workspace,
        directories.map((path) => ["rmdir", workspace.at(path)]),
      ),
      "EACCES",
    );
    await expectInPlace(workspace);
  });

  test("RO-05 rename into a writable directory is refused", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) => [
        ["renameat2", path, workspace.at("/work/taken")],
        ["renameat2", path, workspace.at("/work/taken"), RENAME.NOREPLACE],
        ["renameat2", path, workspace.at("/work/own")],
        ["renameat2", path, workspace.at("/src/elsewhere")],
      ]),
      "EACCES",
    );
    await expectInPlace(workspace);
  });

  test("RO-06 an own file can neither replace it nor change places with it", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) => [
        ["renameat2", workspace.at("/work/own"), path],
        ["renameat2", workspace.at("/work/own"), path, RENAME.EXCHANGE],
        ["renameat2", path, workspace.at("/work/own"), RENAME.EXCHANGE],
        ["renameat2", workspace.at("/work/notes.txt"), path],
      ]),
      "EACCES",
    );
    await expectInPlace(workspace);
    expect(await arena.probe.text(workspace.at("/work/own"))).toBe("own");
  });

  test("RO-07 rename of the writable parent leaves a read-only file where it is", async () => {
    const { probe } = arena;
    const workspace = await open();
    const outcomes = await outcomesOf(probe, workspace, [
      ["renameat2", workspace.at("/mixed/sub"), workspace.at("/mixed/sub2")],
      ["renameat2", workspace.at("/mixed/sub"), workspace.at("/work/sub2")],
      ["renameat2", workspace.at("/mixed"), workspace.at("/work/mixed2")],
      ["renameat2", workspace.at("/mixed/sub"), workspace.at("/work/own-dir"), RENAME.EXCHANGE],
    ]);
    expectOnly(outcomes, "EXDEV");
    await probe.call("run", "mv", [workspace.at("/mixed/sub"), workspace.at("/work/moved")]);
    await expectInPlace(workspace);
  });

  test("RO-08 a read-only directory can be neither moved nor replaced", async () => {
    const workspace = await open();
    const outcomes = await outcomesOf(
      arena.probe,
      workspace,
      ["/src", "/src/lib", "/empty.ro", "/mixed/empty.ro"].flatMap((path): Call[] => [
        ["renameat2", workspace.at(path), workspace.at("/work/moved")],
        ["renameat2", workspace.at(path), workspace.at("/work/own-dir")],
        ["renameat2", workspace.at(path), workspace.at("/work/own-dir"), RENAME.EXCHANGE],
      ]),
    );
    expectOnly(outcomes, "EACCES", "EXDEV");
    const over = await outcomesOf(
      arena.probe,
      workspace,
      ["/empty.ro", "/mixed/empty.ro"].map((path) => ["renameat2", workspace.at("/work/own-dir"), workspace.at(path)]),
    );
    expectOnly(over, "EACCES");
    await expectInPlace(workspace);
  });

  test("RO-09 rename of a top level directory with protected entries leaves them and shows nothing", async () => {
    const { probe } = arena;
    const workspace = await open();
    const outcomes = await outcomesOf(probe, workspace, [
      ["renameat2", workspace.at("/mixed"), workspace.at("/mixed2")],
      ["renameat2", workspace.at("/mixed"), workspace.at("/work/m")],
      ["renameat2", workspace.at("/work"), workspace.at("/mixed/w")],
      ["renameat2", workspace.at("/work"), workspace.at("/elsewhere")],
    ]);
    expectOnly(outcomes, "EACCES", "EXDEV");
    await probe.call("run", "mv", [workspace.at("/mixed"), workspace.at("/work/m")]);
    await expectInPlace(workspace);
  });

  test("RO-16 nothing can be made in a read-only directory or in the root", async () => {
    const workspace = await open();
    const places = ["", "/src", "/src/lib", "/empty.ro", "/mixed/empty.ro", "/secrets"];
    expectOnly(
      await outcomesOf(
        arena.probe,
        workspace,
        places.flatMap((place) =>
          ["new", "new.txt", "\u00e9", ".hidden"].flatMap((name) =>
            creationsAt(workspace.at(`${place}/${name}`), workspace.at("/work/own"), workspace.at("/work/own-dir")),
          ),
        ),
      ),
      "EACCES",
    );
    await expectInPlace(workspace);
    expect(await arena.probe.names(workspace.at("/empty.ro"))).toEqual([]);
  });

  test("RO-17 an unnamed file in a read-only directory is refused, and one from elsewhere cannot be linked there", async () => {
    const { probe } = arena;
    const workspace = await open();
    for (const place of ["", "/src", "/empty.ro"]) {
      expect(["EACCES", "EOPNOTSUPP"]).toContain(
        await probe.errnoOf("tryOpen", workspace.at(place), O.TMPFILE | O.RDWR),
      );
    }
    const { ret: fd } = await probe.call("openat", workspace.at("/work"), O.TMPFILE | O.RDWR);
    if (fd >= 0) {
      const outcome = await probe.errnoOf("linkat", `/proc/self/fd/${fd}`, workspace.at("/src/new"), AT.SYMLINK_FOLLOW);
      await probe.call("close", fd);
      expect(outcome).toBe("EACCES");
    }
    expect(await probe.names(workspace.at("/src"))).toEqual(["app.ts", "lib"]);
  });

  test("RO-21 rm -rf of everything removes what may be removed and nothing else", async () => {
    const { probe } = arena;
    const workspace = await open();
    const ended = await probe.call("run", "sh", ["-c", "rm -rf ./* ./.[!.]*; rm -rf work mixed; true"], {
      cwd: workspace.mountPoint,
    });
    expect(ended.status).toBe(0);
    await expectInPlace(workspace);
    expect(await probe.names(workspace.at("/work"))).toEqual(["kept.txt", "shown.txt"]);
    expect(await probe.names(workspace.at("/mixed"))).toEqual(["empty.ro", "kept.txt", "shown.txt", "sub"]);
    await workspace.remount();
    await expectInPlace(workspace);
    expect(await probe.names(workspace.mountPoint)).toEqual([
      "README.md",
      "docs",
      "empty.ro",
      "mixed",
      "run.sh",
      "secrets",
      "src",
      "work",
    ]);
  });

  test("RO-24 a link made in a subdirectory is there and nowhere else", async () => {
    const { probe } = arena;
    const workspace = await open();
    const errnos = await probe.errnos([
      ["symlinkat", "target", workspace.at("/work/README.md")],
      ["symlinkat", "../../README.md", workspace.at("/work/own-dir/run.sh")],
      ["mkdirat", workspace.at("/work/src")],
      ["symlinkat", "/etc/hostname", workspace.at("/work/src/app.ts")],
    ]);
    expect(errnos).toEqual(["OK", "OK", "OK", "OK"]);
    expect((await probe.call("readlinkat", workspace.at("/work/README.md"))).text).toBe("target");
    expect((await probe.call("readlinkat", workspace.at("/work/own-dir/run.sh"))).text).toBe("../../README.md");
    expect((await probe.call("readlinkat", workspace.at("/work/src/app.ts"))).text).toBe("/etc/hostname");
    expect(((await probe.call("fstatat", workspace.at("/README.md"))).stat?.mode ?? 0) & S.IFMT).toBe(S.IFREG);
    await expectInPlace(workspace);
  });

  test("RO-25 an own directory cannot be moved so that its children land where the agent may not write", async () => {
    const { probe } = arena;
    const rules = [
      ...MIXED_RULES,
      { pattern: "/work/target/sub/**", permission: "read", priority: 1 },
      { pattern: "/work/*/secret.txt", permission: "none", priority: 1 },
      { pattern: "/work/nest/*/secret.txt", permission: "write", priority: 2 },
      { pattern: "/work/only.txt/**", permission: "read", priority: 1 },
    ] as const;
    const workspace = await arena.open({ lower: codebase({ hidden: true }), rules });
    const made = await probe.errnos([
      ["mkdirat", workspace.at("/work/source")],
      ["mkdirat", workspace.at("/work/source/sub")],
      ["writeFile", workspace.at("/work/source/sub/file"), "mine"],
      ["mkdirat", workspace.at("/work/nest")],
      ["mkdirat", workspace.at("/work/nest/inner")],
      ["writeFile", workspace.at("/work/nest/inner/secret.txt"), "mine"],
    ]);
    expect(made).toEqual(Array(6).fill("OK"));
    const refused = await outcomesOf(probe, workspace, [
      ["renameat2", workspace.at("/work/source"), workspace.at("/work/target")],
      ["renameat2", workspace.at("/work/nest/inner"), workspace.at("/work/planted")],
      ["renameat2", workspace.at("/work/source"), workspace.at("/work/only.txt")],
      ["renameat2", workspace.at("/work/source"), workspace.at("/src/target")],
      ["renameat2", workspace.at("/work/source"), workspace.at("/work/.env.d")],
    ]);
    expectOnly(refused, "EACCES", "EXDEV");
    expect(await probe.text(workspace.at("/work/source/sub/file"))).toBe("mine");
    expect(await probe.text(workspace.at("/work/nest/inner/secret.txt"))).toBe("mine");
    expect(await probe.errnoOf("fstatat", workspace.at("/work/target"))).toBe("ENOENT");
  });

  test("RO-25 an own directory cannot carry entries away that have become read-only or hidden", async () => {
    const { probe } = arena;
    const workspace = await open();
    const made = await probe.errnos([
      ["mkdirat", workspace.at("/work/box")],
      ["writeFile", workspace.at("/work/box/readable"), "readable"],
      ["writeFile", workspace.at("/work/box/hidden"), "hidden"],
      ["mkdirat", workspace.at("/work/free")],
      ["writeFile", workspace.at("/work/free/file"), "free"],
    ]);
    expect(made).toEqual(Array(5).fill("OK"));
    await workspace.updateRules([
      ...MIXED_RULES,
      { pattern: "/work/box/readable", permission: "read", priority: 1 },
      { pattern: "/work/box/hidden", permission: "none", priority: 1 },
    ]);
    const outcomes = await outcomesOf(probe, workspace, [
      ["renameat2", workspace.at("/work/box"), workspace.at("/work/box2")],
      ["renameat2", workspace.at("/work/box"), workspace.at("/work/free"), RENAME.EXCHANGE],
      ["renameat2", workspace.at("/work/free"), workspace.at("/work/box"), RENAME.EXCHANGE],
    ]);
    expectOnly(outcomes, "EACCES", "EXDEV");
    expect(await probe.names(workspace.at("/work/box"))).toEqual(["readable"]);
    expect(await probe.errnoOf("fstatat", workspace.at("/work/box2"))).toBe("ENOENT");
    expect(await probe.errnoOf("renameat2", workspace.at("/work/free"), workspace.at("/work/free2"))).toBe("OK");
  });

  test("RO-26 a file named like a mark of deletion cannot be made, and its neighbour stays", async () => {
    const { probe } = arena;
    const workspace = await open();
    const names = [
      ".wh.kept.txt",
      ".wh.shown.txt",
      ".wh..env",
      ".wh.sub",
      ".wh..wh..opq",
      ".wh.",
      ".wh..",
      ".wh...",
      ".wh..wh.x",
    ];
    expectOnly(
      await outcomesOf(
        probe,
        workspace,
        names.flatMap((name) =>
          creationsAt(workspace.at(`/work/${name}`), workspace.at("/work/own"), workspace.at("/work/own-dir")),
        ),
      ),
      "EPERM",
    );
    for (const again of [false, true]) {
      if (again) await workspace.remount();
      await expectInPlace(workspace);
      expect(await probe.names(workspace.at("/work"))).toEqual([
        "kept.txt",
        "notes.txt",
        "own",
        "own-dir",
        "shown.txt",
        "sub",
      ]);
    }
  });

  test("RO-27 marks of opaque directories, by name or attribute, change nothing", async () => {
    const { probe } = arena;
    const workspace = await open();
    await probe.batch(
      ["/work", "/work/sub", "/mixed"].flatMap((path): Call[] => [
        ["writeFile", workspace.at(`${path}/.wh..wh..opq`), ""],
        ["mkdirat", workspace.at(`${path}/.wh..wh..opq`)],
        ["writeFile", workspace.at(`${path}/.wh..opq`), ""],
        ["setxattr", workspace.at(path), "trusted.overlay.opaque", "y"],
        ["setxattr", workspace.at(path), "user.overlay.opaque", "y"],
        ["setxattr", workspace.at(path), "user.fuseoverlayfs.opaque", "y"],
        ["setxattr", workspace.at(path), "user.agentfense.opaque", "y"],
        ["setxattr", workspace.at(`${path}/kept.txt`), "user.overlay.whiteout", ""],
      ]),
    );
    await workspace.remount();
    await expectInPlace(workspace);
    expect(await probe.names(workspace.at("/work/sub"))).toEqual(["inner.txt"]);
    expect(await probe.names(workspace.at("/work"))).toContain("notes.txt");
  });

  test("RO-28 whiteouts of the kernel's kind cannot be made", async () => {
    const { probe } = arena;
    const workspace = await open();
    const devices = await outcomesOf(probe, workspace, [
      ["mknodat", workspace.at("/work/device"), S.IFCHR | 0o600, 0],
      ["mknodat", workspace.at("/work/null"), S.IFCHR | 0o666, 0x103],
      ["mknodat", workspace.at("/work/disk"), S.IFBLK | 0o600, 0x800],
    ]);
    expectOnly(devices, "EPERM");
    const renames = await outcomesOf(probe, workspace, [
      ["renameat2", workspace.at("/work/own"), workspace.at("/work/other"), RENAME.WHITEOUT],
      ["renameat2", workspace.at("/work/notes.txt"), workspace.at("/work/other"), RENAME.WHITEOUT],
      ["renameat2", workspace.at("/work/own"), workspace.at("/work/other"), RENAME.WHITEOUT | RENAME.NOREPLACE],
    ]);
    expectOnly(renames, "EINVAL", "EPERM");
    expect(await probe.names(workspace.at("/work"))).toEqual([
      "kept.txt",
      "notes.txt",
      "own",
      "own-dir",
      "shown.txt",
      "sub",
    ]);
  });

  test("RO-31 rmdir of a directory of the codebase that is not empty says so", async () => {
    const { probe } = arena;
    const workspace = await open();
    expect(await probe.errnoOf("rmdir", workspace.at("/work/sub"))).toBe("ENOTEMPTY");
    expect(await probe.errnoOf("rmdir", workspace.at("/mixed"))).toBe("ENOTEMPTY");
    expect(await probe.errnoOf("rmdir", workspace.at("/mixed/sub"))).toBe("ENOTEMPTY");
    expect(await probe.errnoOf("rmdir", workspace.at("/work/own-dir"))).toBe("ENOTEMPTY");
    await expectInPlace(workspace);
  });
});
