import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { AT, O, RENAME } from "../../../support/constants.ts";
import type { Call } from "../../../support/probe.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { changesOf } from "../attacks.ts";
import { CANARY, codebase, RULES } from "../codebase.ts";
import { expectOnly, outcomesOf } from "../outcomes.ts";

const VIEW_FILES = ["/docs/guide.md", "/docs/tool.sh", "/work/shown.txt", "/pack/manual/page.md"] as const;

describeAttack("VIEW: moving, changing and replacing what may only be listed", (arena) => {
  const open = async (): Promise<TestWorkspace> => {
    const pack = { manual: { "page.md": `page ${CANARY.view}`, empty: {} }, "free.txt": "free" };
    const workspace = await arena.open({
      lower: codebase({ hidden: true, extra: { pack } }),
      rules: [
        ...RULES,
        { pattern: "/pack/**", permission: "write" },
        { pattern: "/pack/manual/**", permission: "view", priority: 1 },
      ],
    });
    const made = await arena.probe.errnos([
      ["writeFile", workspace.at("/work/own"), "own"],
      ["mkdirat", workspace.at("/work/own-dir")],
    ]);
    expect(made).toEqual(["OK", "OK"]);
    return workspace;
  };

  const onEach = async (workspace: TestWorkspace, rows: (path: string) => readonly Call[]) =>
    await outcomesOf(
      arena.probe,
      workspace,
      VIEW_FILES.flatMap((path) => rows(workspace.at(path))),
    );

  /** Everything is where it was, nothing of it can be read, and nothing of it is in the delta. */
  const expectUnmoved = async (workspace: TestWorkspace): Promise<void> => {
    expectOnly(await onEach(workspace, (path) => [["tryOpen", path, O.RDONLY]]), "EACCES");
    for (const path of VIEW_FILES) expect(await arena.probe.errnoOf("fstatat", workspace.at(path)), path).toBe("OK");
    expect((await arena.probe.call("scan", workspace.mountPoint, Object.values(CANARY))).found).toEqual([]);
    expect(workspace.deltaPathsHolding(CANARY.view)).toEqual([]);
    expect(await arena.probe.text(workspace.at("/work/own"))).toBe("own");
  };

  test("VIEW-09 a hard link to a readable name is refused", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) => [
        ["linkat", path, workspace.at("/work/stolen")],
        ["linkat", path, workspace.at("/work/stolen"), AT.SYMLINK_FOLLOW],
        ["linkat", path, workspace.at("/docs/other")],
        ["linkat", path, workspace.at("/stolen")],
      ]),
      "EACCES",
    );
    expect(await arena.probe.errnoOf("fstatat", workspace.at("/work/stolen"))).toBe("ENOENT");
    await expectUnmoved(workspace);
  });

  test("VIEW-10 a link made from a descriptor is refused", async () => {
    const { probe } = arena;
    const workspace = await open();
    for (const path of VIEW_FILES) {
      const { ret: fd } = await probe.call("openat", workspace.at(path), O.PATH);
      const errnos = await probe.errnos([
        ["linkat", `/proc/self/fd/${fd}`, workspace.at("/work/stolen"), AT.SYMLINK_FOLLOW],
        ["linkat", { at: fd, path: "" }, workspace.at("/work/stolen"), AT.EMPTY_PATH],
      ]);
      await probe.call("close", fd);
      expect(errnos[0]).toBe("EACCES");
      // Without the right to link descriptors the kernel itself answers ENOENT.
      expect(["EACCES", "ENOENT"]).toContain(errnos[1]);
    }
    expect(await probe.errnoOf("fstatat", workspace.at("/work/stolen"))).toBe("ENOENT");
    await expectUnmoved(workspace);
  });

  test("VIEW-11 rename to a readable name is refused, from a view directory and from a writable one", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) => [
        ["renameat2", path, workspace.at("/work/stolen")],
        ["renameat2", path, workspace.at("/work/stolen"), RENAME.NOREPLACE],
        ["renameat2", path, workspace.at("/work/own")],
        ["renameat2", path, workspace.at("/stolen")],
        ["renameat2", path, workspace.at("/docs/other")],
      ]),
      "EACCES",
    );
    await expectUnmoved(workspace);
  });

  test("VIEW-12 the directory, or one above it, does not carry the content away", async () => {
    const { probe } = arena;
    const workspace = await open();
    const outcomes = await outcomesOf(
      probe,
      workspace,
      ["/docs", "/pack", "/pack/manual", "/pack/manual/empty"].flatMap((path): Call[] => [
        ["renameat2", workspace.at(path), workspace.at("/work/moved")],
        ["renameat2", workspace.at(path), workspace.at("/work/moved"), RENAME.NOREPLACE],
        ["renameat2", workspace.at(path), workspace.at("/work/own-dir")],
        ["renameat2", workspace.at(path), workspace.at("/work/own-dir"), RENAME.EXCHANGE],
        ["renameat2", workspace.at(path), workspace.at("/pack2")],
      ]),
    );
    expectOnly(outcomes, "EACCES", "EXDEV");
    expect(await probe.errnoOf("fstatat", workspace.at("/work/moved"))).toBe("ENOENT");
    await expectUnmoved(workspace);
  });

  test("VIEW-13 exchanging with an own file is refused, in either direction", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) => [
        ["renameat2", path, workspace.at("/work/own"), RENAME.EXCHANGE],
        ["renameat2", workspace.at("/work/own"), path, RENAME.EXCHANGE],
      ]),
      "EACCES",
    );
    await expectUnmoved(workspace);
  });

  test("VIEW-15 mode, owner, times, size and attributes cannot be changed to get at the content", async () => {
    const workspace = await open();
    const before = await onEach(workspace, (path) => [["fstatat", path]]);
    expectOnly(await onEach(workspace, (path) => [...changesOf(path), ["fchownat", path, 0, 0]]), "EACCES");
    expect(await onEach(workspace, (path) => [["fstatat", path]])).toEqual(before);
    expect(workspace.deltaPaths().filter((path) => /docs|shown|manual/.test(path))).toEqual([]);
    await expectUnmoved(workspace);
  });

  test("VIEW-16 it cannot be removed to make room for an own file", async () => {
    const { probe } = arena;
    const workspace = await open();
    expectOnly(await onEach(workspace, (path) => [["unlinkat", path]]), "EACCES");
    const directories = await outcomesOf(probe, workspace, [
      ["rmdir", workspace.at("/pack/manual/empty")],
      ["rmdir", workspace.at("/docs")],
    ]);
    expectOnly(directories, "EACCES");
    await expectUnmoved(workspace);
  });

  test("VIEW-17 it cannot be replaced in a writable directory", async () => {
    const { probe } = arena;
    const workspace = await open();
    expectOnly(await onEach(workspace, (path) => [["renameat2", workspace.at("/work/own"), path]]), "EACCES");
    expectOnly(
      await onEach(workspace, (path) => [
        ["tryOpen", path, O.WRONLY | O.CREAT | O.EXCL],
        ["linkat", workspace.at("/work/own"), path],
        ["symlinkat", "own", path],
        ["mkdirat", path],
        ["mknodat", path, 0o100644],
        ["renameat2", workspace.at("/work/own"), path, RENAME.NOREPLACE],
      ]),
      "EEXIST",
    );
    const directory = await outcomesOf(probe, workspace, [
      ["renameat2", workspace.at("/work/own-dir"), workspace.at("/pack/manual/empty")],
      ["renameat2", workspace.at("/work/own-dir"), workspace.at("/pack/manual/empty"), RENAME.EXCHANGE],
    ]);
    expectOnly(directory, "EACCES", "EXDEV");
    await expectUnmoved(workspace);
  });

  test("VIEW-22 no tool that copies, links, moves or packs the directory gets its content", async () => {
    const { probe } = arena;
    const workspace = await open();
    const commands = [
      "cp -r docs work/copy",
      "cp -a docs work/archive",
      "cp -rl docs work/links",
      "cp -rs $PWD/docs work/symlinks; cat work/symlinks/*",
      "cp --reflink=always docs/guide.md work/clone",
      "mv docs work/moved",
      "mv work/shown.txt work/renamed.txt",
      "tar cf work/docs.tar docs",
      "tar cf - docs",
      "cat docs/* work/shown.txt pack/manual/page.md",
      "dd if=docs/guide.md of=work/dd",
      "ln docs/guide.md work/ln; ln work/shown.txt work/ln2; cat work/ln work/ln2",
      "install docs/guide.md work/installed",
      "cd work && ln -s ../docs here && cat here/guide.md && cp -L here/guide.md copy.md",
    ];
    for (const command of commands) {
      const ended = await probe.call("run", "sh", ["-c", command], { cwd: workspace.mountPoint });
      expect(`${ended.stdout}${ended.stderr}`, command).not.toContain(CANARY.view);
    }
    await expectUnmoved(workspace);
  });
});
