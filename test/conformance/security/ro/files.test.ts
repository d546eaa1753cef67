import { readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { AT, FALLOC, IOCTL, MAP, O, OK, PROT } from "../../../support/constants.ts";
import { eventually } from "../../../support/eventually.ts";
import { identityOf } from "../../../support/identity.ts";
import { PeerEnded } from "../../../support/peer.ts";
import type { Call } from "../../../support/probe.ts";
import { hardlink, link } from "../../../support/tree.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { codebase, RULES } from "../codebase.ts";
import { expectOnly, outcomesOf } from "../outcomes.ts";

/** Files that may be read and not changed: in read-only directories, executable, and as an exception in a writable one. */
const READ_FILES = ["/README.md", "/run.sh", "/src/app.ts", "/src/lib/util.ts", "/work/kept.txt"] as const;

describeAttack("RO: changing the content and attributes of what is read-only", (arena) => {
  const open = async (options: { revocable?: boolean } = {}): Promise<TestWorkspace> => {
    const workspace = await arena.open({ lower: codebase({ hidden: true }), rules: RULES, ...options });
    expect(await arena.probe.errnoOf("writeFile", workspace.at("/work/own"), "own content")).toBe("OK");
    return workspace;
  };

  const onEach = async (workspace: TestWorkspace, rows: (path: string) => readonly Call[]) =>
    await outcomesOf(
      arena.probe,
      workspace,
      READ_FILES.flatMap((path) => rows(workspace.at(path))),
    );

  /** Content, size, mode and time are those of the codebase, and nothing was copied to the delta. */
  const expectUnchanged = async (workspace: TestWorkspace): Promise<void> => {
    for (const path of READ_FILES) {
      expect(await arena.probe.text(workspace.at(path)), path).toBe(readFileSync(workspace.lower + path, "utf8"));
      const { stat } = await arena.probe.call("statx", workspace.at(path), AT.STATX_FORCE_SYNC);
      const host = statSync(workspace.lower + path, { bigint: true });
      expect(stat, path).toMatchObject({ size: Number(host.size), mtimeNs: host.mtimeNs });
      expect((stat?.mode ?? 0) & 0o222, `${path} shows no right to write`).toBe(0);
      expect((stat?.mode ?? 0) & 0o555, `${path} shows the rights of the codebase`).toBe(Number(host.mode) & 0o555);
    }
    expect(workspace.deltaPaths().filter((path) => /README|run\.sh|app\.ts|util\.ts|kept/.test(path))).toEqual([]);
  };

  test("RO-01 opening for writing is refused in every mode", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) =>
        [O.WRONLY, O.RDWR].flatMap((access) =>
          [0, O.APPEND, O.CREAT, O.DIRECT, O.NONBLOCK, O.SYNC, O.NOFOLLOW, O.CREAT | O.APPEND].map(
            (flag): Call => ["tryOpen", path, access | flag],
          ),
        ),
      ),
      "EACCES",
    );
    expectOnly(await onEach(workspace, (path) => [["tryOpen", path, O.RDONLY | O.CREAT]]), "OK");
    expectOnly(await onEach(workspace, (path) => [["tryOpen", path, O.WRONLY | O.CREAT | O.EXCL]]), "EEXIST");
    await expectUnchanged(workspace);
  });

  test("RO-02 O_TRUNC is refused with any access mode, and so is access mode 3", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) => [
        ["tryOpen", path, O.RDONLY | O.TRUNC],
        ["tryOpen", path, O.WRONLY | O.TRUNC],
        ["tryOpen", path, O.RDWR | O.TRUNC],
        ["tryOpen", path, O.NEITHER],
        ["tryOpen", path, O.NEITHER | O.TRUNC],
        ["tryOpen", path, O.RDONLY | O.CREAT | O.TRUNC],
        ["tryOpen", path, O.RDWR | O.CREAT | O.TRUNC],
      ]),
      "EACCES",
    );
    await expectUnchanged(workspace);
  });

  test("RO-03 truncate is refused, to nothing, to less and to more", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) => [0, 1, 5, 100_000].map((length) => ["truncate", path, length])),
      "EACCES",
    );
    await expectUnchanged(workspace);
  });

  test("RO-10 mode, owner and times stay", async () => {
    const workspace = await open();
    const { uid, gid } = identityOf(arena.agent);
    expectOnly(
      await onEach(workspace, (path) => [
        ["fchmodat", path, 0o777],
        ["fchmodat", path, 0o644],
        ["fchmodat2", path, 0o777, 0],
        ["fchmodat2", path, 0o777, AT.SYMLINK_NOFOLLOW],
        ["fchownat", path, uid, gid],
        ["fchownat", path, uid, -1],
        ["fchownat", path, uid, gid, AT.SYMLINK_NOFOLLOW],
        ["fchownat", path, -1, -1],
        ["utimensat", path, "now"],
        [
          "utimensat",
          path,
          [
            [1, 0],
            [1, 0],
          ],
        ],
        [
          "utimensat",
          path,
          [
            [1, 0],
            [1, 0],
          ],
          AT.SYMLINK_NOFOLLOW,
        ],
      ]),
      "EACCES",
    );
    await expectUnchanged(workspace);
  });

  test("RO-10 a read-only link and directory keep their owner and times too", async () => {
    const workspace = await arena.open({
      lower: codebase({ hidden: true, extra: { link: link("run.sh"), dir: {} } }),
      rules: RULES,
    });
    const rows = ["/link", "/dir", ""].flatMap((path): Call[] => [
      ["fchownat", workspace.at(path), 1, 1, AT.SYMLINK_NOFOLLOW],
      [
        "utimensat",
        workspace.at(path),
        [
          [1, 0],
          [1, 0],
        ],
        AT.SYMLINK_NOFOLLOW,
      ],
    ]);
    const directories = ["/dir", "/src", ""].map((path): Call => ["fchmodat", workspace.at(path), 0o777]);
    expectOnly(await outcomesOf(arena.probe, workspace, [...rows, ...directories]), "EACCES");
  });

  test("RO-11 no extended attribute can be set or removed", async () => {
    const workspace = await open();
    const capability = Uint8Array.of(1, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const acl = Uint8Array.of(
      2,
      0,
      0,
      0,
      1,
      0,
      7,
      0,
      255,
      255,
      255,
      255,
      4,
      0,
      7,
      0,
      255,
      255,
      255,
      255,
      32,
      0,
      7,
      0,
      255,
      255,
      255,
      255,
    );
    const names: [string, string | Uint8Array][] = [
      ["user.note", "text"],
      ["system.posix_acl_access", acl],
      ["security.capability", capability],
      ["security.other", "text"],
      ["trusted.note", "text"],
      ["trusted.overlay.opaque", "y"],
      ["trusted.overlay.whiteout", "y"],
      ["user.overlay.opaque", "y"],
      ["user.fuseoverlayfs.opaque", "y"],
      ["user.containers.override_stat", "0:0:0777"],
    ];
    const outcomes = await onEach(workspace, (path) =>
      names.flatMap(([name, value]): Call[] => [
        ["setxattr", path, name, value],
        ["lsetxattr", path, name, value],
        ["removexattr", path, name],
      ]),
    );
    expect(Object.entries(outcomes).filter(([, outcome]) => outcome === "OK")).toEqual([]);
    const directory = await outcomesOf(
      arena.probe,
      workspace,
      names.map(([name, value]) => ["setxattr", workspace.at("/src"), name, value]),
    );
    expect(Object.values(directory)).not.toContain("OK");
    for (const path of READ_FILES)
      expect((await arena.probe.call("listxattr", workspace.at(path))).ret).toBeLessThanOrEqual(0);
    await expectUnchanged(workspace);
  });

  test("RO-12 a read-only descriptor cannot be mapped for shared writing, at once or later", async () => {
    const { probe } = arena;
    const workspace = await open();
    for (const path of READ_FILES) {
      const { ret: fd } = await probe.call("openat", workspace.at(path), O.RDONLY);
      expect(await probe.errnoOf("mmap", fd, 4096, PROT.READ | PROT.WRITE, MAP.SHARED)).toBe("EACCES");
      const { ret: mapping } = await probe.call("mmap", fd, 4096, PROT.READ, MAP.SHARED);
      expect(await probe.errnoOf("mprotect", mapping, 4096, PROT.READ | PROT.WRITE)).toBe("EACCES");
      const { ret: copy } = await probe.call("mmap", fd, 4096, PROT.READ | PROT.WRITE, MAP.PRIVATE);
      await probe.call("poke", copy, "private");
      await probe.batch([
        ["munmap", mapping, 4096],
        ["munmap", copy, 4096],
        ["close", fd],
      ]);
    }
    await expectUnchanged(workspace);
  });

  test("RO-13 a hard link to a writable name is refused", async () => {
    const { probe } = arena;
    const workspace = await open();
    expectOnly(await onEach(workspace, (path) => [["linkat", path, workspace.at("/work/link")]]), "EACCES");
    expect(await probe.errnoOf("writeFile", workspace.at("/work/link"), "own file")).toBe("OK");
    await expectUnchanged(workspace);
  });

  test("RO-14 writing through one name of a codebase file leaves its other name as it was", async () => {
    const { probe } = arena;
    const lower = {
      ro: { "shared.txt": "original" },
      work: { "shared.txt": hardlink("/ro/shared.txt"), again: hardlink("/ro/shared.txt") },
    };
    const workspace = await arena.open({ lower, rules: RULES });
    const { ret: reader } = await probe.call("openat", workspace.at("/ro/shared.txt"), O.RDONLY);
    const errnos = await probe.errnos([
      ["writeFile", workspace.at("/work/shared.txt"), "changed", O.WRONLY | O.APPEND],
      ["truncate", workspace.at("/work/again"), 3],
      ["fchmodat", workspace.at("/work/again"), 0o600],
    ]);
    expect(errnos).toEqual(["OK", "OK", "OK"]);
    const texts = ["/ro/shared.txt", "/work/shared.txt", "/work/again"].map((path) => probe.text(workspace.at(path)));
    expect(await Promise.all(texts)).toEqual(["original", "originalchanged", "ori"]);
    const held = await probe.call("pread", reader, 100, 0);
    expect(Buffer.from(held.data ?? []).toString()).toBe("original");
    await probe.call("close", reader);
  });

  test("RO-15 links are no way to write", async () => {
    const { probe } = arena;
    const workspace = await open();
    const rows: Call[] = [];
    for (const [index, path] of READ_FILES.entries()) {
      const links = [`/work/relative-${index}`, `/work/absolute-${index}`, `/work/chain-${index}`].map((name) =>
        workspace.at(name),
      );
      const made = await probe.errnos([
        ["symlinkat", `..${path}`, links[0] ?? ""],
        ["symlinkat", workspace.at(path), links[1] ?? ""],
        ["symlinkat", `relative-${index}`, links[2] ?? ""],
      ]);
      expect(made).toEqual(["OK", "OK", "OK"]);
      rows.push(
        ...links.flatMap((name): Call[] => [
          ["tryOpen", name, O.WRONLY],
          ["tryOpen", name, O.RDWR | O.CREAT],
          ["tryOpen", name, O.RDONLY | O.TRUNC],
          ["writeFile", name, "changed"],
          ["truncate", name, 0],
          ["fchmodat", name, 0o777],
          ["utimensat", name, "now"],
          ["faccessat", name, OK.W],
        ]),
      );
    }
    expectOnly(await outcomesOf(probe, workspace, rows), "EACCES");
    const planting = await probe.errnos([
      ["symlinkat", "../new-in-root", workspace.at("/work/out")],
      ["writeFile", workspace.at("/work/out"), "planted"],
    ]);
    expect(planting).toEqual(["OK", "EACCES"]);
    await expectUnchanged(workspace);
  });

  test("RO-18 a read-only or path descriptor cannot be opened again for writing", async () => {
    const { probe } = arena;
    const workspace = await open();
    for (const path of READ_FILES) {
      for (const flags of [O.RDONLY, O.PATH]) {
        const { ret: fd } = await probe.call("openat", workspace.at(path), flags);
        const errnos = await probe.errnos([
          ["tryOpen", `/proc/self/fd/${fd}`, O.WRONLY],
          ["tryOpen", `/proc/self/fd/${fd}`, O.RDWR],
          ["tryOpen", `/proc/self/fd/${fd}`, O.RDONLY | O.TRUNC],
          ["tryOpen", `/proc/self/fd/${fd}`, O.WRONLY | O.CREAT | O.APPEND],
          ["truncate", `/proc/self/fd/${fd}`, 0],
          ["fchmodat", `/proc/self/fd/${fd}`, 0o777],
          ["utimensat", `/proc/self/fd/${fd}`, "now"],
        ]);
        await probe.call("close", fd);
        expect(errnos).toEqual(Array(7).fill("EACCES"));
      }
    }
    await expectUnchanged(workspace);
  });

  test("RO-19 nothing can be changed through a read-only descriptor", async () => {
    const { probe } = arena;
    const workspace = await open();
    for (const path of READ_FILES) {
      const { ret: fd } = await probe.call("openat", workspace.at(path), O.RDONLY);
      const errnos = await probe.errnos([
        ["fchmod", fd, 0o777],
        ["fchown", fd, -1, -1],
        ["fchown", fd, 1, 1],
        ["futimens", fd, "now"],
        [
          "futimens",
          fd,
          [
            [1, 0],
            [1, 0],
          ],
        ],
        ["fsetxattr", fd, "user.note", "text"],
        ["fremovexattr", fd, "user.note"],
        ["ftruncate", fd, 0],
        ["fallocate", fd, 0, 0, 100],
        ["fallocate", fd, FALLOC.KEEP_SIZE | FALLOC.PUNCH_HOLE, 0, 5],
        ["write", fd, "x"],
        ["pwrite", fd, "x", 0],
      ]);
      await probe.call("close", fd);
      expect(errnos).toEqual([...Array(7).fill("EACCES"), "EINVAL", ...Array(4).fill("EBADF")]);
    }
    await expectUnchanged(workspace);
  });

  test("RO-20 inode flags cannot be set", async () => {
    const { probe } = arena;
    const workspace = await open();
    for (const path of READ_FILES) {
      const { ret: fd } = await probe.call("openat", workspace.at(path), O.RDONLY);
      const answers = await probe.errnos([
        ["ioctl", fd, IOCTL.FS_IOC_SETFLAGS, Uint8Array.of(0x10, 0, 0, 0, 0, 0, 0, 0)],
        ["ioctl", fd, IOCTL.FS_IOC_SETFLAGS, Uint8Array.of(0x40, 0, 0, 0, 0, 0, 0, 0)],
        ["ioctl", fd, IOCTL.FS_IOC_FSSETXATTR, new Uint8Array(28).fill(8, 0, 1)],
      ]);
      await probe.call("close", fd);
      expect(answers).not.toContain("OK");
    }
    await expectUnchanged(workspace);
  });

  test("RO-22 nothing can be copied, spliced or cloned into a read-only descriptor", async () => {
    const { probe } = arena;
    const workspace = await open();
    const { ret: source } = await probe.call("openat", workspace.at("/work/own"), O.RDWR);
    const pipe = await probe.call("pipe2");
    await probe.call("write", pipe.writer ?? -1, "piped");
    for (const path of READ_FILES) {
      const { ret: fd } = await probe.call("openat", workspace.at(path), O.RDONLY);
      const errnos = await probe.errnos([
        ["copy_file_range", source, fd, 3],
        ["splice", pipe.reader ?? -1, fd, 3],
        ["sendfile", fd, source, 3],
        ["ioctl", fd, IOCTL.FICLONE, source],
      ]);
      await probe.call("close", fd);
      for (const errno of errnos) expect(["EBADF", "EACCES"]).toContain(errno);
    }
    await probe.batch([
      ["close", source],
      ["close", pipe.reader ?? -1],
      ["close", pipe.writer ?? -1],
    ]);
    await expectUnchanged(workspace);
  });

  test("RO-23 a writable file in a read-only directory can be written, and nothing can be made beside it", async () => {
    const { probe } = arena;
    const workspace = await arena.open({
      lower: codebase({ hidden: true }),
      rules: [...RULES, { pattern: "/src/app.ts", permission: "write" }],
    });
    expect(await probe.errnoOf("writeFile", workspace.at("/src/app.ts"), "changed")).toBe("OK");
    expect(await probe.text(workspace.at("/src/app.ts"))).toBe("changed");
    const beside = await outcomesOf(probe, workspace, [
      ["writeFile", workspace.at("/src/app.ts~"), "x"],
      ["mkdirat", workspace.at("/src/new")],
      ["symlinkat", "app.ts", workspace.at("/src/link")],
      ["linkat", workspace.at("/src/app.ts"), workspace.at("/src/link")],
      ["renameat2", workspace.at("/src/app.ts"), workspace.at("/src/other.ts")],
      ["renameat2", workspace.at("/src/app.ts"), workspace.at("/src/lib/util.ts")],
      ["writeFile", workspace.at("/src/lib/util.ts"), "x"],
    ]);
    expectOnly(beside, "EACCES");
    await workspace.remount();
    expect(await probe.names(workspace.at("/src"))).toEqual(["app.ts", "lib"]);
    expect(await probe.text(workspace.at("/src/app.ts"))).toBe("changed");
  });

  test("RO-29 on a revocable mount a descriptor open for writing ends with the right to write", async () => {
    const { probe } = arena;
    const workspace = await open({ revocable: true });
    const stricter = [...RULES, { pattern: "/work/**", permission: "read", priority: 1 } as const];
    const { ret: fd } = await probe.call("openat", workspace.at("/work/notes.txt"), O.RDWR);
    expect(await probe.errnoOf("pwrite", fd, "first", 0)).toBe("OK");
    await workspace.updateRules(stricter);
    const errnos = await probe.errnos([
      ["pwrite", fd, "second", 0],
      ["ftruncate", fd, 0],
      ["fallocate", fd, 0, 0, 100],
      ["fchmod", fd, 0o777],
    ]);
    for (const errno of errnos) expect(["EACCES", "EBADF"]).toContain(errno);
    const kept = await probe.call("pread", fd, 100, 0);
    expect(Buffer.from(kept.data ?? []).toString()).toBe("first\n");
    await probe.call("close", fd);
    expect(await probe.text(workspace.at("/work/notes.txt"))).toBe("first\n");
  });

  test("RO-29 on a revocable mount a shared mapping writes nothing after the right has ended", async () => {
    const workspace = await open({ revocable: true });
    const victim = await arena.anotherProbe();
    const { ret: fd } = await victim.call("openat", workspace.at("/work/notes.txt"), O.RDWR);
    const { ret: mapping } = await victim.call("mmap", fd, 4096, PROT.READ | PROT.WRITE, MAP.SHARED);
    await victim.call("poke", mapping, "early");
    expect(await victim.errnoOf("msync", mapping, 4096)).toBe("OK");
    await workspace.updateRules([...RULES, { pattern: "/work/**", permission: "read", priority: 1 }]);
    const ended = await victim
      .batch([
        ["poke", mapping, "later"],
        ["msync", mapping, 4096],
        ["fsync", fd],
      ])
      .catch((error: unknown) => (error instanceof PeerEnded ? error.reason : Promise.reject(error)));
    if (typeof ended !== "string") expect(ended.map((answer) => answer.errno)).not.toEqual(["OK", "OK", "OK"]);
    expect(readFileSync(`${workspace.delta}/tree/work/notes.txt`, "utf8"), "the delta").toBe("early\n");
    // The kernel lets a process dirty a page it may read; what it could not write back must not stay in its cache.
    await eventually(async () => expect(await arena.probe.text(workspace.at("/work/notes.txt"))).toBe("early\n"));
  });

  test("RO-30 access says no where writing is refused, and execution follows the codebase's bits", async () => {
    const workspace = await open();
    expectOnly(
      await onEach(workspace, (path) =>
        [OK.W, OK.R | OK.W].flatMap((mode): Call[] => [
          ["faccessat", path, mode],
          ["faccessat2", path, mode],
          ["faccessat2", path, mode, AT.EACCESS],
        ]),
      ),
      "EACCES",
    );
    expectOnly(await onEach(workspace, (path) => [["faccessat", path, OK.R]]), "OK");
    const execution = await arena.probe.errnos([
      ["faccessat", workspace.at("/run.sh"), OK.X],
      ["faccessat", workspace.at("/README.md"), OK.X],
      ["faccessat", workspace.at("/src"), OK.W],
      ["faccessat", workspace.at("/src"), OK.X | OK.R],
      ["faccessat", workspace.at("/work"), OK.W],
      ["faccessat", workspace.at("/work/notes.txt"), OK.R | OK.W],
    ]);
    expect(execution).toEqual(["OK", "EACCES", "EACCES", "OK", "OK", "OK"]);
    expect((await arena.probe.call("run", workspace.at("/run.sh"), [])).stdout).toBe("ran\n");
  });
});
