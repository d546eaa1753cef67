import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { AT, IN, O, OK, RENAME, RESOLVE } from "../../../support/constants.ts";
import type { Call } from "../../../support/probe.ts";
import { link } from "../../../support/tree.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { changesOf, departuresOf, usesOf } from "../attacks.ts";
import { ABSENT, CANARY, HIDDEN_NAMES, HIDDEN_PATHS, RULES } from "../codebase.ts";
import { expectOnly, outcomesOf, outcomesOfTwins } from "../outcomes.ts";
import { OWN, openTwins, withDirectory } from "../twins.ts";

/** One table row per hidden path of the codebase. */
function everywhere(twin: TestWorkspace, rows: (path: string) => readonly Call[]): Call[] {
  return HIDDEN_PATHS.flatMap((path) => rows(twin.at(path)));
}

describeAttack("DISC: operations at a hidden name that must be there", (arena) => {
  /** Every row at every hidden path: ENOENT, whether something is there or not. */
  const expectNoEntry = async (rows: (path: string) => readonly Call[]): Promise<void> => {
    const twins = await openTwins(arena);
    expectOnly(await outcomesOfTwins(arena.probe, twins, (twin) => everywhere(twin, rows)), "ENOENT");
  };

  test("DISC-06 stat finds nothing, by path and from a held parent", async () => {
    const { probe } = arena;
    const twins = await openTwins(arena);
    const table = async (twin: TestWorkspace) =>
      await withDirectory(probe, twin.at("/work"), async (directory) => {
        const names = [...HIDDEN_NAMES, ABSENT, ".env.d/inner.txt", "sub/.env", "../.env", "../src/lib/.env.d"];
        const rows = names.flatMap((path): Call[] => [
          ["fstatat", { at: directory, path }],
          ["fstatat", { at: directory, path }, 0],
          ["statx", { at: directory, path }],
        ]);
        return await outcomesOf(probe, twin, rows);
      });
    const there = await table(twins.there);
    expectOnly(there, "ENOENT");
    expect(Object.values(there)).toEqual(Object.values(await table(twins.absent)));
    expectOnly(
      await outcomesOfTwins(probe, twins, (twin) =>
        everywhere(twin, (path) => [
          ["fstatat", path],
          ["fstatat", path, 0],
        ]),
      ),
      "ENOENT",
    );
  });

  test("DISC-06 stat finds nothing after every other attempt has been made", async () => {
    const twins = await openTwins(arena);
    const rows = (path: string): Call[] => usesOf(path);
    expectOnly(await outcomesOfTwins(arena.probe, twins, (twin) => everywhere(twin, rows)), "ENOENT");
    expectOnly(await outcomesOfTwins(arena.probe, twins, (twin) => everywhere(twin, rows)), "ENOENT");
  });

  test("DISC-07 statx finds nothing, with cached attributes or fresh ones", () =>
    expectNoEntry((path) => [
      ["statx", path, AT.STATX_DONT_SYNC],
      ["statx", path, AT.STATX_FORCE_SYNC],
      ["statx", path, AT.STATX_DONT_SYNC | AT.SYMLINK_NOFOLLOW],
      ["statx", path, AT.STATX_FORCE_SYNC | AT.SYMLINK_NOFOLLOW],
    ]));

  test("DISC-08 access finds nothing to read, write, execute or see", () =>
    expectNoEntry((path) =>
      [OK.F, OK.R, OK.W, OK.X, OK.R | OK.W | OK.X].flatMap((mode): Call[] => [
        ["faccessat", path, mode],
        ["faccessat2", path, mode],
        ["faccessat2", path, mode, AT.EACCESS],
        ["faccessat2", path, mode, AT.SYMLINK_NOFOLLOW],
      ]),
    ));

  test("DISC-09 open finds nothing with any flag", () =>
    expectNoEntry((path) =>
      [O.RDONLY, O.WRONLY, O.RDWR, O.NEITHER].flatMap((access) =>
        [0, O.PATH, O.DIRECTORY, O.NOFOLLOW, O.DIRECT, O.APPEND, O.NONBLOCK, O.NOATIME, O.SYNC].map(
          (flag): Call => ["tryOpen", path, access | flag],
        ),
      ),
    ));

  test("DISC-10 open with O_TRUNC finds nothing and empties nothing", () =>
    expectNoEntry((path) => [
      ["tryOpen", path, O.RDONLY | O.TRUNC],
      ["tryOpen", path, O.WRONLY | O.TRUNC],
      ["tryOpen", path, O.RDWR | O.TRUNC],
      ["tryOpen", path, O.NEITHER | O.TRUNC],
      ["tryOpen", path, O.RDONLY | O.TRUNC | O.NOFOLLOW],
    ]));

  test("DISC-11 openat2 finds nothing with any way to resolve", async () => {
    const { probe } = arena;
    const twins = await openTwins(arena);
    const table = async (twin: TestWorkspace) =>
      await withDirectory(probe, twin.mountPoint, async (root) => {
        const ways = [
          0,
          RESOLVE.NO_XDEV,
          RESOLVE.NO_SYMLINKS,
          RESOLVE.BENEATH,
          RESOLVE.IN_ROOT,
          RESOLVE.NO_MAGICLINKS,
          0x0f,
        ];
        const rows = HIDDEN_PATHS.flatMap((path) =>
          ways.flatMap((resolve) =>
            [O.RDONLY, O.PATH, O.RDWR, O.DIRECTORY].map(
              (flags): Call => ["tryOpen2", { at: root, path: path.slice(1) }, { flags, resolve }],
            ),
          ),
        );
        return await outcomesOf(probe, twin, rows);
      });
    const there = await table(twins.there);
    expectOnly(there, "ENOENT");
    expect(Object.values(there)).toEqual(Object.values(await table(twins.absent)));
  });

  test("DISC-12 the kernel's cache of names knows no more of a hidden entry than of an absent one", async () => {
    const { probe } = arena;
    const twins = await openTwins(arena);
    const primings: readonly ((path: string, parent: string) => Call[])[] = [
      () => [],
      (path) => [["fstatat", path]],
      (_, parent) => [["list", parent]],
      (path, parent) => [
        ["list", parent],
        ["tryOpen", path, O.RDONLY],
        ["unlinkat", path],
        ["mkdirat", path],
      ],
    ];
    const cached = async (twin: TestWorkspace, priming: (path: string, parent: string) => Call[]) => {
      const answers: Record<string, string[]> = {};
      for (const path of HIDDEN_PATHS) {
        const parent = path.slice(0, path.lastIndexOf("/"));
        await probe.batch(priming(twin.at(path), twin.at(parent)));
        answers[path] = await probe.errnos([
          ["tryOpen2", twin.at(path), { flags: O.PATH, resolve: RESOLVE.CACHED }],
          ["tryOpen2", twin.at(path), { flags: O.RDONLY, resolve: RESOLVE.CACHED }],
        ]);
      }
      return answers;
    };
    for (const priming of primings) {
      const there = await cached(twins.there, priming);
      expect(there).toEqual(await cached(twins.absent, priming));
      const sameDirectory = HIDDEN_PATHS.filter((path) => path.startsWith("/work/.env"));
      expect(new Set(sameDirectory.map((path) => there[path]?.join())).size, "one answer for there and absent").toBe(1);
      expect(Object.values(there).flat()).not.toContain("OK");
    }
  });

  test("DISC-13 file handles of visible names tell nothing of hidden ones between", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `n${index}`);
    const workspace = await arena.open({
      rules: RULES,
      lower: Object.fromEntries(
        names.flatMap((name) => [
          [name, name],
          [`.env.${name}`, { hidden: name }],
        ]),
      ),
    });
    const handles = await arena.probe.batch(
      names.map((name) => ["name_to_handle_at", workspace.at(`/${name}`), AT.HANDLE_FID] as const),
    );
    const numbers = handles.map(({ errno, handle }) =>
      errno === "OK" ? Buffer.from(handle!).readUInt32LE(12) : errno,
    );
    if (numbers.every((number) => number === "EOPNOTSUPP")) return; // a kernel that gives none for this file system
    // Ids in a row would count what was looked at in between; drawn at random, no two of a dozen are this near.
    const near = numbers.filter((number, index) =>
      numbers.slice(0, index).some((other) => Math.abs(Number(number) - Number(other)) <= 2 * names.length),
    );
    expect(near).toEqual([]);
  });

  test("DISC-13 no file handle is given for a hidden name", () =>
    expectNoEntry((path) => [
      ["name_to_handle_at", path, 0],
      ["name_to_handle_at", path, AT.HANDLE_FID],
      ["name_to_handle_at", path, AT.SYMLINK_FOLLOW],
      ["name_to_handle_at", path, AT.SYMLINK_FOLLOW | AT.HANDLE_FID],
    ]));

  test("DISC-14 readlink, chdir and opendir find nothing", () =>
    expectNoEntry((path) => [
      ["readlinkat", path],
      ["tryChdir", path],
      ["list", path],
    ]));

  test("DISC-15 what follows the hidden name makes no difference", () =>
    expectNoEntry((path) =>
      ["/", "//", "/.", "/..", "/x", "/inner.txt", "/../README.md", "/./", "/deeper/.."].flatMap((suffix): Call[] => [
        ["fstatat", path + suffix],
        ["fstatat", path + suffix, 0],
        ["tryOpen", path + suffix, O.RDONLY],
        ["tryOpen", path + suffix, O.PATH],
        ["tryOpen", path + suffix, O.RDONLY | O.DIRECTORY],
        ["faccessat", path + suffix, OK.F],
        ["readlinkat", path + suffix],
        ["tryChdir", path + suffix],
        ["unlinkat", path + suffix],
        ["rmdir", path + suffix],
        ["fchmodat", path + suffix, 0o600],
        ["truncate", path + suffix, 0],
        ["statfs", path + suffix],
      ]),
    ));

  test("DISC-16 no other way to write the path reaches it", async () => {
    const { probe } = arena;
    const extra = { here: link("."), "to-src": link("src"), "to-work": link("./to-src/../work") };
    const twins = await openTwins(arena, { extra });
    const rows = (path: string): Call[] => [
      ["fstatat", path],
      ["tryOpen", path, O.RDONLY],
      ["readFile", path],
      ["faccessat", path, OK.F],
      ["unlinkat", path],
    ];
    const outcomes = await outcomesOfTwins(probe, twins, (twin) => {
      const m = twin.mountPoint;
      return [...HIDDEN_NAMES, ABSENT].flatMap((name) =>
        [
          `${m}/src/../${name}`,
          `${m}//${name}`,
          `${m}/./${name}`,
          `${m}/src/lib/../../src/./lib//${name}`,
          `${m}/here/here/${name}`,
          `${m}/to-src/${name}`,
          `${m}/to-src/lib/../${name}`,
          `${m}/to-work/sub/../${name}`,
          `/proc/self/root${m}/${name}`,
          `${m}/../mnt/work/${name}`,
        ].flatMap(rows),
      );
    });
    expectOnly(outcomes, "ENOENT");
    for (const twin of Object.values(twins)) {
      const relative = [...HIDDEN_NAMES, ABSENT].flatMap((name) =>
        [name, `./${name}`, `src/../${name}`, `/proc/self/cwd/${name}`, `/proc/self/cwd/to-src/${name}`].flatMap(rows),
      );
      await probe.call("chdir", twin.mountPoint);
      const fromInside = await outcomesOf(probe, twin, relative);
      await probe.call("chdir", "/");
      expectOnly(fromInside, "ENOENT");
    }
  });

  test("DISC-17 a link that points at a hidden entry is there, and following it finds nothing", async () => {
    const { probe } = arena;
    const names = [...HIDDEN_NAMES, ABSENT];
    const links = Object.fromEntries(names.map((name) => [`to${name}`, link(`../src/${name}`)]));
    const twins = await openTwins(arena, { extra: { links: { ...links, chain: link("to.env"), loop: link("loop") } } });
    const following = (path: string): Call[] => [
      ["fstatat", path, 0],
      ["tryOpen", path, O.RDONLY],
      ["tryOpen", path, O.RDONLY | O.DIRECTORY],
      ["tryOpen", path, O.PATH],
      ["faccessat", path, OK.F],
      ["list", path],
      ["tryChdir", path],
      ["statfs", path],
      ["readFile", path],
      ["fstatat", `${path}/inner.txt`],
    ];
    const codebaseLinks = [...names.map((name) => `/links/to${name}`), "/links/chain"];
    expectOnly(
      await outcomesOfTwins(probe, twins, (twin) => codebaseLinks.flatMap((path) => following(twin.at(path)))),
      "ENOENT",
    );
    const themselves = await outcomesOfTwins(probe, twins, (twin) =>
      codebaseLinks.flatMap((path): Call[] => [
        ["readlinkat", twin.at(path)],
        ["fstatat", twin.at(path)],
      ]),
    );
    for (const outcome of Object.values(themselves)) expect(outcome).toMatch(/^OK/);

    const made = await outcomesOfTwins(probe, twins, (twin) =>
      names.flatMap((name): Call[] => [
        ["symlinkat", `../src/${name}`, twin.at(`/work/one${name}`)],
        ["symlinkat", `one${name}`, twin.at(`/work/two${name}`)],
        ["symlinkat", twin.at(`/work/two${name}`), twin.at(`/work/three${name}`)],
      ]),
    );
    expectOnly(made, "OK");
    expectOnly(
      await outcomesOfTwins(probe, twins, (twin) =>
        names.flatMap((name) => ["one", "two", "three"].flatMap((step) => following(twin.at(`/work/${step}${name}`)))),
      ),
      "ENOENT",
    );
  });

  test("DISC-22 connecting to a hidden socket finds nothing", async () => {
    const { probe } = arena;
    const twins = await openTwins(arena);
    for (const twin of Object.values(twins)) {
      for (const place of ["", "/src", "/work"]) {
        await probe.call("chdir", twin.at(place));
        const errnos = await probe.errnos([...HIDDEN_NAMES, ABSENT].map((name) => ["tryConnect", name] as const));
        await probe.call("chdir", "/");
        expect(new Set(errnos)).toEqual(new Set(["ENOENT"]));
      }
    }
  });

  test("DISC-25 exchanging with a hidden name finds nothing, in either direction", async () => {
    const twins = await openTwins(arena);
    expectOnly(
      await outcomesOfTwins(arena.probe, twins, (twin) =>
        everywhere(twin, (path) => [
          ["renameat2", twin.at(OWN), path, RENAME.EXCHANGE],
          ["renameat2", path, twin.at(OWN), RENAME.EXCHANGE],
          ["renameat2", path, path, RENAME.EXCHANGE],
          ["renameat2", twin.at("/README.md"), path, RENAME.EXCHANGE],
        ]),
      ),
      "ENOENT",
    );
    for (const twin of Object.values(twins)) expect(await arena.probe.text(twin.at(OWN))).toBe("mine\n");
  });

  test("DISC-26 nothing can be renamed or linked from a hidden name", async () => {
    const twins = await openTwins(arena);
    expectOnly(
      await outcomesOfTwins(arena.probe, twins, (twin) =>
        everywhere(twin, (path) => [
          ...departuresOf(path, twin.at("/work/stolen")),
          ...departuresOf(path, twin.at("/stolen")),
          ["renameat2", path, twin.at(OWN)],
          ["renameat2", path, twin.at("/work/.env.elsewhere")],
        ]),
      ),
      "ENOENT",
    );
    for (const twin of Object.values(twins)) {
      expect(await arena.probe.errnoOf("fstatat", twin.at("/work/stolen"))).toBe("ENOENT");
    }
  });

  test("DISC-27 unlink and rmdir find nothing", () =>
    expectNoEntry((path) => [
      ["unlinkat", path],
      ["rmdir", path],
    ]));

  test("DISC-28 chmod, chown, utimes, truncate and extended attributes find nothing", () =>
    expectNoEntry((path) => [
      ...changesOf(path),
      ["getxattr", path, "user.any"],
      ["lgetxattr", path, "security.capability"],
      ["listxattr", path],
      ["llistxattr", path],
      ["lremovexattr", path, "user.any"],
    ]));

  test("DISC-29 statfs finds no hidden path, and counts the workspace and not the host", async () => {
    const { probe } = arena;
    const quota = { bytes: 64 << 20, files: 5000 };
    const twins = await openTwins(arena, { quota });
    expectOnly(await outcomesOfTwins(probe, twins, (twin) => everywhere(twin, (path) => [["statfs", path]])), "ENOENT");
    const shown = await outcomesOfTwins(probe, twins, (twin) => [
      ["statfs", twin.mountPoint],
      ["statfs", twin.at("/src")],
    ]);
    for (const outcome of Object.values(shown)) expect(outcome).toMatch(/^OK/);
    const { statfs } = await probe.call("statfs", twins.there.mountPoint);
    expect(statfs).toMatchObject({ files: quota.files });
    expect(Math.abs((statfs?.blocks ?? 0) * (statfs?.bsize ?? 0) - quota.bytes)).toBeLessThan(1 << 20);
  });

  test("DISC-29 free space does not move when the host changes hidden files, with a quota or without", async () => {
    const { probe } = arena;
    for (const quota of [{ bytes: 64 << 20, files: 5000 }, undefined]) {
      const { there } = await openTwins(arena, quota === undefined ? {} : { quota });
      const before = (await probe.call("statfs", there.mountPoint)).statfs;
      there.onHost((lower) => {
        writeFileSync(join(lower, ".env.large"), Buffer.alloc(24 << 20, CANARY.hidden), { flush: true });
        for (let count = 0; count < 50; count++) writeFileSync(join(lower, `.env.${count}`), CANARY.hidden);
      });
      const after = (await probe.call("statfs", there.mountPoint)).statfs;
      expect(after, quota === undefined ? "without a quota" : "with a quota").toEqual(before);
    }
  });

  test("DISC-30 a hidden name cannot be watched, and a watched directory says nothing about hidden names", async () => {
    const { probe } = arena;
    const twins = await openTwins(arena);
    const { ret: inotify } = await probe.call("inotify_init1", IN.NONBLOCK);
    expectOnly(
      await outcomesOfTwins(probe, twins, (twin) =>
        everywhere(twin, (path) => [["inotify_add_watch", inotify, path, IN.ALL_EVENTS]]),
      ),
      "ENOENT",
    );
    const { there } = twins;
    expect(await probe.errnoOf("inotify_add_watch", inotify, there.at("/work"), IN.CREATE | IN.DELETE)).toBe("OK");
    await probe.batch(usesOf(there.at("/work/.env")));
    await probe.batch([
      ["mkdirat", there.at("/work/.env.new")],
      ["renameat2", there.at(OWN), there.at("/work/.env")],
    ]);
    there.onHost((lower) => {
      writeFileSync(join(lower, "work/.env.fresh"), CANARY.hidden);
      rmSync(join(lower, "work/.env.exe"));
    });
    await probe.call("list", there.at("/work"));
    expect((await probe.call("inotifyEvents", inotify)).events).toEqual([]);
    expect(await probe.errnoOf("writeFile", there.at("/work/seen.txt"), "x")).toBe("OK");
    const { events } = await probe.call("inotifyEvents", inotify);
    expect(events?.map((event) => event.name)).toEqual(["seen.txt"]);
    await there.updateRules([...RULES, { pattern: "/work/seen.txt", permission: "none", priority: 300 }]);
    await probe.batch([
      ["list", there.at("/work")],
      ["fstatat", there.at("/work/seen.txt")],
    ]);
    expect((await probe.call("inotifyEvents", inotify)).events?.map((event) => event.name)).not.toContain("seen.txt");
    await probe.call("close", inotify);
  });
});
