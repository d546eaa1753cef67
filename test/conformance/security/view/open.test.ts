import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { AT, MAP, O, OK, PROT, RESOLVE, S } from "../../../support/constants.ts";
import type { Call } from "../../../support/probe.ts";
import { file, link } from "../../../support/tree.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { creationsAt } from "../attacks.ts";
import { CANARY, codebase, HIDDEN_NAMES, RULES } from "../codebase.ts";
import { expectOnly, outcomesOf } from "../outcomes.ts";
import { withDirectory } from "../twins.ts";

/** Files that may only be listed: in a view directory, executable, and as an exception in a writable directory. */
const VIEW_FILES = ["/docs/guide.md", "/docs/tool.sh", "/work/shown.txt"] as const;

describeAttack("VIEW: opening what may only be listed", (arena) => {
  const open = (): Promise<TestWorkspace> => arena.open({ lower: codebase({ hidden: true }), rules: RULES });

  const onEach = async (workspace: TestWorkspace, rows: (path: string) => readonly Call[]) =>
    await outcomesOf(
      arena.probe,
      workspace,
      VIEW_FILES.flatMap((path) => rows(workspace.at(path))),
    );

  const expectSizesKept = async (workspace: TestWorkspace): Promise<void> => {
    for (const path of VIEW_FILES) {
      const { stat } = await arena.probe.call("statx", workspace.at(path), AT.STATX_FORCE_SYNC);
      expect(stat?.size).toBe(readFileSync(workspace.lower + path).length);
    }
  };

  test("VIEW-01 a file of which another name may be read cannot be opened by the name that may only be listed", async () => {
    const { probe } = arena;
    const workspace = await arena.open({ lower: {}, rules: [{ pattern: "/**", permission: "write" }] });
    const made = await probe.errnos([
      ["writeFile", workspace.at("/readable"), "text"],
      ["linkat", workspace.at("/readable"), workspace.at("/listed")],
    ]);
    expect(made).toEqual(["OK", "OK"]);
    // The name that may be read is known first; what it allows must not stand for the other.
    await workspace.remount([
      { pattern: "/**", permission: "read" },
      { pattern: "/listed", permission: "view" },
    ]);
    expect(await probe.errnoOf("tryOpen", workspace.at("/readable"), O.RDONLY)).toBe("OK");
    expect(await probe.errnoOf("tryOpen", workspace.at("/listed"), O.RDONLY)).toBe("EACCES");
    expect((await probe.call("fstatat", workspace.at("/listed"))).stat?.mode).toBe(S.IFREG);
  });

  test("VIEW-01 what may only be listed is listed, with its true size and type and no right to open it", async () => {
    const { probe } = arena;
    const workspace = await arena.open({
      lower: codebase({
        hidden: true,
        extra: { docs: { "big.bin": "x".repeat(70_001), sub: {}, link: link("big.bin") } },
      }),
      rules: RULES,
    });
    expect(await probe.names(workspace.at("/docs"))).toEqual(["big.bin", "link", "sub"]);
    const { stat } = await probe.call("fstatat", workspace.at("/docs/big.bin"));
    expect(stat?.size).toBe(70_001);
    expect(stat?.mode).toBe(S.IFREG);
    expect((await probe.call("readlinkat", workspace.at("/docs/link"))).text).toBe("big.bin");
    expect((await probe.call("fstatat", workspace.at("/docs/link"))).stat?.size).toBe("big.bin".length);
    const directory = (await probe.call("fstatat", workspace.at("/docs"))).stat?.mode ?? 0;
    expect(directory & 0o555).toBe(0o555);
    expect(directory & 0o222).toBe(0);
    expect(await probe.names(workspace.at("/docs/sub"))).toEqual([]);
    expect(await probe.errnoOf("tryChdir", workspace.at("/docs/sub"))).toBe("OK");
  });

  test("VIEW-02 reading is refused with every flag", async () => {
    const workspace = await open();
    const flags = [0, O.NOATIME, O.DIRECT, O.NONBLOCK, O.NOFOLLOW, O.CLOEXEC, O.SYNC, O.NOATIME | O.NONBLOCK];
    expectOnly(await onEach(workspace, (path) => flags.map((flag) => ["tryOpen", path, O.RDONLY | flag])), "EACCES");
    expectOnly(await onEach(workspace, (path) => [["readFile", path]]), "EACCES");
  });

  test("VIEW-03 opening for writing, appending or truncating is refused and changes nothing", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) =>
        [O.WRONLY, O.RDWR, O.NEITHER].flatMap((access): Call[] => [
          ["tryOpen", path, access],
          ["tryOpen", path, access | O.APPEND],
          ["tryOpen", path, access | O.CREAT],
          ["tryOpen", path, access | O.TRUNC],
          ["tryOpen", path, access | O.CREAT | O.TRUNC],
          ["tryOpen", path, access | O.DIRECT],
          ["tryOpen", path, O.RDONLY | O.CREAT],
          ["tryOpen", path, O.RDONLY | O.TRUNC],
          ["tryOpen", path, O.RDONLY | O.CREAT | O.TRUNC],
        ]),
      ),
      "EACCES",
    );
    expectOnly(await onEach(workspace, (path) => [["tryOpen", path, O.WRONLY | O.CREAT | O.EXCL]]), "EEXIST");
    await expectSizesKept(workspace);
    expect(workspace.deltaPathsHolding(CANARY.view)).toEqual([]);
  });

  test("VIEW-04 a descriptor of the path reads nothing and cannot be opened again", async () => {
    const { probe } = arena;
    const workspace = await open();
    for (const path of VIEW_FILES) {
      const { ret: fd } = await probe.call("openat", workspace.at(path), O.PATH);
      expect(fd, path).toBeGreaterThan(0);
      const errnos = await probe.errnos([
        ["read", fd, 10],
        ["pread", fd, 10, 0],
        ["write", fd, "x"],
        ["tryOpen", `/proc/self/fd/${fd}`, O.RDONLY],
        ["tryOpen", `/proc/self/fd/${fd}`, O.RDWR],
        ["tryOpen", `/proc/self/fd/${fd}`, O.RDONLY | O.TRUNC],
        ["readFile", `/proc/self/fd/${fd}`],
        ["truncate", `/proc/self/fd/${fd}`, 0],
        ["faccessat", `/proc/self/fd/${fd}`, OK.R],
      ]);
      expect(errnos).toEqual(["EBADF", "EBADF", "EBADF", ...Array(6).fill("EACCES")]);
      const empty = await probe.errnos([
        ["tryOpen2", { at: fd, path: "" }, { flags: O.RDONLY }],
        ["tryOpen2", { at: fd, path: "" }, { flags: O.RDONLY | AT.EMPTY_PATH }],
        ["tryOpen", { at: fd, path: "" }, O.RDONLY],
        ["tryOpen", { at: fd, path: "." }, O.RDONLY],
      ]);
      expect(empty).not.toContain("OK");
      await probe.call("close", fd);
    }
  });

  test("VIEW-05 openat2 refuses with every way to resolve", async () => {
    const { probe } = arena;
    const workspace = await open();
    await withDirectory(probe, workspace.mountPoint, async (root) => {
      const ways = [0, RESOLVE.NO_XDEV, RESOLVE.NO_SYMLINKS, RESOLVE.BENEATH, RESOLVE.IN_ROOT, RESOLVE.NO_MAGICLINKS];
      const rows = VIEW_FILES.flatMap((path) =>
        ways.flatMap((resolve): Call[] => [
          ["tryOpen2", { at: root, path: path.slice(1) }, { flags: O.RDONLY, resolve }],
          ["tryOpen2", { at: root, path: path.slice(1) }, { flags: O.RDWR, resolve }],
        ]),
      );
      expectOnly(await outcomesOf(probe, workspace, rows), "EACCES");
      const cached = await probe.errnos(
        VIEW_FILES.map(
          (path) => ["tryOpen2", workspace.at(path), { flags: O.RDONLY, resolve: RESOLVE.CACHED }] as const,
        ),
      );
      expect(cached.filter((errno) => !["EACCES", "EAGAIN"].includes(errno))).toEqual([]);
    });
  });

  test("VIEW-06 nothing that may only be listed runs, by itself or through an interpreter", async () => {
    const { probe } = arena;
    const program = readFileSync("/bin/echo");
    const workspace = await arena.open({
      lower: codebase({
        hidden: true,
        extra: {
          docs: {
            "tool.sh": file({ content: `#!/bin/sh\necho ${CANARY.view}\n`, mode: 0o755 }),
            "tool.py": file({ content: `print("${CANARY.view}")\n`, mode: 0o755 }),
            program: file({ content: program, mode: 0o755 }),
          },
        },
      }),
      rules: RULES,
    });
    for (const name of ["tool.sh", "program"]) {
      expect(await probe.errnoOf("run", workspace.at(`/docs/${name}`), [CANARY.view]), name).toBe("EACCES");
      expect(await probe.errnoOf("execveat", workspace.at(`/docs/${name}`), [name, CANARY.view])).toBe("EACCES");
    }
    const loader =
      readFileSync("/bin/echo")
        .toString("latin1")
        .match(/\/lib[\w./-]*ld-linux[\w.-]*/)?.[0] ?? "/lib/ld.so";
    const attempts: [string, string[]][] = [
      ["sh", [workspace.at("/docs/tool.sh")]],
      ["sh", ["-c", `. ${workspace.at("/docs/tool.sh")}`]],
      ["sh", ["-c", `sh < ${workspace.at("/docs/tool.sh")}`]],
      ["python3", [workspace.at("/docs/tool.py")]],
      [process.execPath, [workspace.at("/docs/tool.sh")]],
      [loader, [workspace.at("/docs/program"), CANARY.view]],
    ];
    for (const [command, argv] of attempts) {
      const ended = await probe.call("run", command, argv);
      expect(ended.stdout, command).toBe("");
      expect(ended.status, command).not.toBe(0);
    }
  });

  test("VIEW-07 a descriptor of the path cannot be executed", async () => {
    const { probe } = arena;
    const workspace = await open();
    const { ret: fd } = await probe.call("openat", workspace.at("/docs/tool.sh"), O.PATH);
    expect(await probe.errnoOf("execveat", { at: fd, path: "" }, ["tool"], AT.EMPTY_PATH)).toBe("EACCES");
    expect(await probe.errnoOf("execveat", `/proc/self/fd/${fd}`, ["tool"])).toBe("EACCES");
    await probe.call("close", fd);
  });

  test("VIEW-08 a descriptor of the path cannot be mapped, sent, spliced or copied", async () => {
    const { probe } = arena;
    const workspace = await open();
    expect(await probe.errnoOf("writeFile", workspace.at("/work/sink"), "")).toBe("OK");
    const { ret: sink } = await probe.call("openat", workspace.at("/work/sink"), O.RDWR);
    const pipe = await probe.call("pipe2");
    for (const path of VIEW_FILES) {
      const { ret: fd } = await probe.call("openat", workspace.at(path), O.PATH);
      const errnos = await probe.errnos([
        ["mmap", fd, 4096, PROT.READ, MAP.PRIVATE],
        ["mmap", fd, 4096, PROT.READ | PROT.WRITE, MAP.SHARED],
        ["sendfile", sink, fd, 100],
        ["splice", fd, pipe.writer ?? -1, 100],
        ["copy_file_range", fd, sink, 100],
        ["getdents64", fd, 1000],
        ["fgetxattr", fd, "user.any"],
      ]);
      expect(errnos).toEqual(Array(7).fill("EBADF"));
      await probe.call("close", fd);
    }
    await probe.batch([
      ["close", sink],
      ["close", pipe.reader ?? -1],
      ["close", pipe.writer ?? -1],
    ]);
  });

  test("VIEW-14 a link from a writable directory opens nothing", async () => {
    const { probe } = arena;
    const workspace = await open();
    const links = ["one", "two", "three"].map((name) => workspace.at(`/work/${name}`));
    const [one = "", two = "", three = ""] = links;
    expect(
      await probe.errnos([
        ["symlinkat", "../docs/guide.md", one],
        ["symlinkat", "one", two],
        ["symlinkat", workspace.at("/docs/guide.md"), three],
      ]),
    ).toEqual(["OK", "OK", "OK"]);
    for (const path of links) {
      const rows: Call[] = [
        ["tryOpen", path, O.RDONLY],
        ["tryOpen", path, O.RDWR],
        ["tryOpen", path, O.WRONLY | O.CREAT],
        ["tryOpen", path, O.RDONLY | O.TRUNC],
        ["faccessat", path, OK.R],
        ["truncate", path, 0],
      ];
      expectOnly(await outcomesOf(probe, workspace, rows), "EACCES");
    }
    await expectSizesKept(workspace);
  });

  test("VIEW-18 nothing can be created in a directory that may only be listed", async () => {
    const { probe } = arena;
    const workspace = await open();
    await probe.batch([
      ["writeFile", workspace.at("/work/own"), "own"],
      ["mkdirat", workspace.at("/work/own-dir")],
    ]);
    const names = ["new", "new.txt", "guide.md2", "a b", ...HIDDEN_NAMES];
    expectOnly(
      await outcomesOf(
        probe,
        workspace,
        names.flatMap((name) =>
          creationsAt(workspace.at(`/docs/${name}`), workspace.at("/work/own"), workspace.at("/work/own-dir")),
        ),
      ),
      "EACCES",
    );
    const unnamed = await probe.errnoOf("tryOpen", workspace.at("/docs"), O.TMPFILE | O.RDWR);
    expect(["EACCES", "EOPNOTSUPP"]).toContain(unnamed);
    expect(await probe.names(workspace.at("/docs"))).toEqual(["guide.md", "tool.sh"]);
  });

  test("VIEW-19 no file handle, real or made up, opens anything", async () => {
    const { probe } = arena;
    const workspace = await open();
    await probe.call("run", "find", [workspace.mountPoint]);
    const given = await probe.batch(
      VIEW_FILES.flatMap((path): Call[] => [
        ["name_to_handle_at", workspace.at(path)],
        ["name_to_handle_at", workspace.at(path), AT.HANDLE_FID],
      ]),
    );
    const real = given.flatMap((answer) => (answer.handle === undefined ? [] : [answer.handle]));
    // The kernel's FUSE handle: type 0x81, then the node id (high word first) and the generation; 0x82 adds the parent's.
    const made = Array.from({ length: 200 }, (_, node) => [
      words([12, 0x81, 0, node, 0]),
      words([24, 0x82, 0, node, 0, 0, 1, 0]),
    ]).flat();
    await withDirectory(probe, workspace.mountPoint, async (root) => {
      const errnos = await probe.errnos(
        [...real, ...made].flatMap((handle): Call[] => [
          ["open_by_handle_at", root, handle, O.RDONLY],
          ["open_by_handle_at", root, handle, O.PATH],
        ]),
      );
      expect(errnos).not.toContain("OK");
    });
  });

  test("VIEW-20 io_uring answers like the system calls", async (context) => {
    const { probe } = arena;
    const workspace = await open();
    const hidden = ["/.env", "/work/.env", "/docs/.env.d/inner.txt", "/secrets/key.pem"];
    const answer = await probe.call("uring", [
      ...VIEW_FILES.map((path) => ({ op: "openat", path: workspace.at(path), flags: O.RDONLY }) as const),
      ...VIEW_FILES.map((path) => ({ op: "openat", path: workspace.at(path), flags: O.RDWR }) as const),
      ...VIEW_FILES.map((path) => ({ op: "unlinkat", path: workspace.at(path) }) as const),
      ...VIEW_FILES.map((path) => ({ op: "statx", path: workspace.at(path) }) as const),
      ...hidden.map((path) => ({ op: "openat", path: workspace.at(path), flags: O.RDONLY }) as const),
      ...hidden.map((path) => ({ op: "statx", path: workspace.at(path) }) as const),
      { op: "openat", path: workspace.at("/README.md"), flags: O.RDWR },
      { op: "openat", path: workspace.at("/README.md"), flags: O.RDONLY },
    ]);
    if (answer.errno === "EPERM" || answer.errno === "ENOSYS") context.skip(`io_uring: ${answer.errno}`);
    const answers = answer.answers ?? [];
    expect(answers.map((one) => one.errno)).toEqual([
      ...Array(9).fill("EACCES"),
      ...Array(3).fill("OK"),
      ...Array(8).fill("ENOENT"),
      "EACCES",
      "OK",
    ]);
    const fd = answers.at(-1)?.ret ?? -1;
    const read = await probe.call("uring", [{ op: "read", fd, length: 100 }]);
    expect(Buffer.from(read.answers?.[0]?.data ?? []).toString()).toBe("about this\n");
    await probe.call("close", fd);
  });

  test("VIEW-21 access says no where open says no", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) =>
        [OK.R, OK.W, OK.X, OK.R | OK.W, OK.R | OK.X].flatMap((mode): Call[] => [
          ["faccessat", path, mode],
          ["faccessat2", path, mode],
          ["faccessat2", path, mode, AT.EACCESS],
        ]),
      ),
      "EACCES",
    );
    expectOnly(await onEach(workspace, (path) => [["faccessat", path, OK.F]]), "OK");
    const directory = await arena.probe.errnos(
      [OK.F, OK.R, OK.X, OK.W].map((mode) => ["faccessat", workspace.at("/docs"), mode] as const),
    );
    expect(directory).toEqual(["OK", "OK", "OK", "EACCES"]);
  });
});

function words(values: readonly number[]): Uint8Array {
  return new Uint8Array(Uint32Array.from(values).buffer);
}
