import { linkSync, lstatSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { AT } from "../../../support/constants.ts";
import type { Dirent } from "../../../support/operations.ts";
import { hardlink, link, type Tree, treeState } from "../../../support/tree.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { CANARY, HIDDEN, PLACES, RULES } from "../codebase.ts";
import { outcomesOfTwins } from "../outcomes.ts";
import { openTwins, withDirectory } from "../twins.ts";

/** A directory of 40 files and 5 directories among which 300 hidden ones can be. */
function crowd(hidden: boolean): Tree {
  const shown = Array.from({ length: 40 }, (_, index) => [`file-${index}.txt`, `content ${index}`]);
  const directories = Array.from({ length: 5 }, (_, index) => [`directory-${index}`, { "a.txt": "a" }]);
  const secrets = Array.from({ length: 300 }, (_, index) => [
    `.env.${index}`,
    index % 3 === 0 ? { "inner.txt": CANARY.hidden } : CANARY.hidden,
  ]);
  const all = hidden ? [...secrets, ...shown, ...directories] : [...shown, ...directories];
  return Object.fromEntries(all) as Tree;
}

describeAttack("DISC: what listings and attributes give away", (arena) => {
  const openCrowds = async () => ({
    there: await arena.open({ lower: { crowd: crowd(true) }, rules: RULES }),
    absent: await arena.open({ lower: { crowd: crowd(false) }, rules: RULES }),
  });

  const listing = async (path: string, size?: number): Promise<readonly Dirent[]> => {
    const answer = await arena.probe.call("list", path, size);
    expect(answer.errno, path).toBe("OK");
    return answer.entries ?? [];
  };

  test("DISC-01 every directory lists exactly what is visible in it", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const names = Object.fromEntries(
      await Promise.all(
        ["", "/src", "/src/lib", "/work", "/work/sub", "/docs", "/secrets"].map(
          async (path) => [path, await probe.names(there.at(path))] as const,
        ),
      ),
    );
    expect(names).toEqual({
      "": ["README.md", "docs", "run.sh", "secrets", "src", "work"],
      "/src": ["app.ts", "lib"],
      "/src/lib": ["util.ts"],
      "/work": ["kept.txt", "notes.txt", "own-directory", "own.txt", "shown.txt", "sub"],
      "/work/sub": ["inner.txt"],
      "/docs": ["guide.md", "tool.sh"],
      "/secrets": ["public.key"],
    });
  });

  test("DISC-02 getdents64 with any buffer size gives the set that libc sees, with true types", async () => {
    const { there } = await openTwins(arena, { extra: { odd: { link: link("x"), dir: {}, file: "f", ...HIDDEN } } });
    const whole = await listing(there.at("/odd"));
    expect(whole.map(({ name, type }) => `${name} ${type}`).sort()).toEqual([
      ". directory",
      ".. directory",
      "dir directory",
      "file file",
      "link symlink",
    ]);
    for (const size of [24, 32, 48, 64, 100, 280, 4096, 1 << 20]) {
      expect(await listing(there.at("/odd"), size), `a buffer of ${size} bytes`).toEqual(whole);
    }
    const libc = await arena.probe.call("run", "ls", ["-A1", there.at("/odd")]);
    expect(libc.stdout).toBe("dir\nfile\nlink\n");
  });

  test("DISC-02 a buffer too small for the first entry is EINVAL, with hidden entries or without", async () => {
    const crowds = await openCrowds();
    const outcomes = await outcomesOfTwins(arena.probe, crowds, (twin) =>
      [1, 8, 19, 23].map((size) => ["list", twin.at("/crowd"), size] as const),
    );
    expect(new Set(Object.values(outcomes))).toEqual(new Set(["EINVAL"]));
  });

  test("DISC-03 no offset, real or made up, brings an entry that a full listing lacks", async () => {
    const { probe } = arena;
    const crowds = await openCrowds();
    const answers = async (twin: TestWorkspace) => {
      const known = await listing(twin.at("/crowd"));
      const real = known.map((entry) => entry.off);
      const offsets = new Set([0, ...real, ...real.flatMap((off) => [off - 1, off + 1]), 350, 1000, 2 ** 31, 2 ** 52]);
      return await withDirectory(probe, twin.at("/crowd"), async (directory) => {
        const reached = await probe.batch([...offsets].map((off) => ["listAt", directory, off] as const));
        const names = new Set(known.map((entry) => entry.name));
        const strangers = reached.flatMap((answer) => answer.entries ?? []).filter((entry) => !names.has(entry.name));
        expect(strangers).toEqual([]);
        return reached.map((answer) => [answer.errno, answer.entries?.length]);
      });
    };
    expect(await answers(crowds.there)).toEqual(await answers(crowds.absent));
  });

  test("DISC-03 going back to an offset continues the listing exactly there", async () => {
    const { probe } = arena;
    const { there } = await openCrowds();
    const whole = await listing(there.at("/crowd"));
    await withDirectory(probe, there.at("/crowd"), async (directory) => {
      for (const [index, entry] of whole.entries()) {
        const rest = await probe.call("listAt", directory, entry.off);
        expect(rest.entries, `after ${entry.name}`).toEqual(whole.slice(index + 1));
      }
    });
  });

  test("DISC-04 offsets are those of a directory without the 300 hidden entries", async () => {
    const crowds = await openCrowds();
    const offsets = async (twin: TestWorkspace) => (await listing(twin.at("/crowd"))).map((entry) => entry.off);
    expect(await offsets(crowds.there)).toEqual(await offsets(crowds.absent));
  });

  test("DISC-05 inode numbers are made by the engine and have no gaps where hidden entries are", async () => {
    const { probe } = arena;
    const crowds = await openCrowds();
    const numbers = async (twin: TestWorkspace) => {
      // The attacker's own attempts at hidden names must not leave gaps either.
      await probe.batch(
        [".env.0", ".env.1", ".env.absent"].map((name) => ["fstatat", twin.at(`/crowd/${name}`)] as const),
      );
      const entries = await listing(twin.at("/crowd"));
      const names = entries.map((entry) => entry.name).filter((name) => !name.startsWith("."));
      const answers = await probe.batch(names.map((name) => ["fstatat", twin.at(`/crowd/${name}`)] as const));
      const stats = answers.map((answer) => answer.stat?.ino ?? -1);
      const listed = entries.filter((entry) => !entry.name.startsWith(".")).map((entry) => entry.ino);
      expect(listed, "d_ino is st_ino").toEqual(stats);
      expect(new Set(stats).size).toBe(names.length);
      return stats.toSorted((a, b) => a - b);
    };
    const there = await numbers(crowds.there);
    expect(there).toEqual(await numbers(crowds.absent));

    const host = hostInodes(crowds.there.lower);
    expect(there.filter((number) => host.has(number) && number > 4096)).toEqual([]);
  });

  test("DISC-05 the number of an own file does not follow from the host's inode", async () => {
    const { probe } = arena;
    const one = await arena.open({ lower: {}, rules: [{ pattern: "/**", permission: "write" }] });
    const two = await arena.open({ lower: { padding: {} }, rules: [{ pattern: "/**", permission: "write" }] });
    expect(await probe.errnoOf("writeFile", one.at("/first"), "x")).toBe("OK");
    // The same inode of the host in two deltas, under two names: whoever knows the engine's source could otherwise
    // compute the host's number from the one it shows, and count what the host creates in between.
    linkSync(join(one.delta, "tree/first"), join(two.delta, "tree/second"));
    await two.remount();
    await probe.call("list", two.mountPoint);
    const first = (await probe.call("fstatat", one.at("/first"))).stat?.ino;
    const second = (await probe.call("fstatat", two.at("/second"))).stat?.ino;
    expect(second).toBeGreaterThan(0);
    expect(second).not.toBe(first);
  });

  test("DISC-35 the link count of a directory counts no hidden subdirectory", async () => {
    const twins = await openTwins(arena);
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) =>
      [...PLACES, "/secrets"].map((place) => ["fstatat", twin.at(place)] as const),
    );
    const { stat } = await arena.probe.call("fstatat", twins.there.at("/src"));
    expect(stat?.nlink).toBeLessThanOrEqual(2 + 1);
    expect(Object.keys(outcomes)).toHaveLength(PLACES.length + 1);
  });

  test("DISC-36 a visible file with a hidden hard link has one link", async () => {
    const { probe } = arena;
    const lower = {
      src: { "shared.txt": "shared", ".env.shared": hardlink("/src/shared.txt") },
      work: { "mine.txt": "mine", ".env.mine": hardlink("/work/mine.txt") },
    };
    const workspace = await arena.open({ lower, rules: RULES });
    for (const path of ["/src/shared.txt", "/work/mine.txt"]) {
      expect((await probe.call("fstatat", workspace.at(path))).stat?.nlink).toBe(1);
      expect((await probe.call("statx", workspace.at(path), AT.STATX_FORCE_SYNC)).stat?.nlink).toBe(1);
    }
    expect(await probe.errnoOf("writeFile", workspace.at("/work/mine.txt"), "changed")).toBe("OK");
    expect((await probe.call("fstatat", workspace.at("/work/mine.txt"))).stat?.nlink).toBe(1);
  });

  test("DISC-37 size and blocks of a directory are those of one without hidden entries", async () => {
    const { probe } = arena;
    const crowds = await openCrowds();
    const sizes = async (twin: TestWorkspace) => {
      const stats = await probe.batch([
        ["fstatat", twin.at("/crowd")],
        ["statx", twin.at("/crowd"), AT.STATX_FORCE_SYNC],
        ["fstatat", twin.mountPoint],
      ]);
      return stats.map(({ stat }) => [stat?.size, stat?.blocks, stat?.blksize]);
    };
    expect(await sizes(crowds.there)).toEqual(await sizes(crowds.absent));
  });

  test("DISC-38 the times of a directory do not move when the host touches a hidden entry in it", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const times = async () => {
      const stats = await probe.batch(
        PLACES.flatMap((place) => [
          ["statx", there.at(place), AT.STATX_FORCE_SYNC] as const,
          ["fstatat", there.at(place)] as const,
        ]),
      );
      return stats.map(({ stat }) => [stat?.mtimeNs, stat?.ctimeNs]);
    };
    const before = await times();
    there.onHost((lower) => {
      for (const place of PLACES) {
        writeFileSync(join(lower, place, ".env.fresh"), CANARY.hidden);
        mkdirSync(join(lower, place, ".env.fresh.d"));
        rmSync(join(lower, place, ".env.exe"));
      }
    });
    expect(await times()).toEqual(before);
  });

  test("DISC-38 a fresh mount does not report the time of the last hidden change either", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const marks = [1_111_111_111, 1_222_222_222, 1_333_333_333];
    for (const mark of marks) {
      there.onHost((lower) => {
        for (const place of PLACES) {
          writeFileSync(join(lower, place, ".env"), `${CANARY.hidden} ${mark}`);
          utimesSync(join(lower, place), mark, mark);
        }
      });
      await there.remount();
      const stats = await probe.batch(PLACES.map((place) => ["statx", there.at(place)] as const));
      for (const [index, { stat }] of stats.entries()) {
        expect(Number((stat?.mtimeNs ?? 0n) / 1_000_000_000n), `mtime of ${PLACES[index]}/`).not.toBe(mark);
      }
    }
  });

  test("DISC-47 names that begin with a dot follow the rules like all others", async () => {
    const { probe } = arena;
    const workspace = await arena.open({
      lower: {
        docs: { ".tls": { "server.pem": CANARY.hidden, "ca.crt": "ca" }, ".config": "c", "a.pem": CANARY.hidden },
      },
      rules: [
        { pattern: "**/*", permission: "read" },
        { pattern: "**/*.pem", permission: "none" },
      ],
    });
    expect(await probe.names(workspace.at("/docs"))).toEqual([".config", ".tls"]);
    expect(await probe.names(workspace.at("/docs/.tls"))).toEqual(["ca.crt"]);
    expect(await probe.text(workspace.at("/docs/.config"))).toBe("c");
    expect(await probe.text(workspace.at("/docs/.tls/server.pem"))).toBe("ENOENT");
  });

  test("DISC-48 the exception below a hidden directory is all that the directory shows", async () => {
    const { probe } = arena;
    const rules = [
      ...RULES,
      { pattern: "/deep/**", permission: "none", priority: 100 } as const,
      { pattern: "/deep/a/b/shown.txt", permission: "read", priority: 200 } as const,
    ];
    const deep = { a: { b: { "shown.txt": "shown", "not.txt": CANARY.hidden }, c: {} }, d: { e: CANARY.hidden } };
    const { there } = await openTwins(arena, { extra: { deep }, rules });
    expect(await probe.names(there.at("/secrets"))).toEqual(["public.key"]);
    expect(await probe.text(there.at("/secrets/public.key"))).toBe("public\n");
    expect(await probe.names(there.at("/deep"))).toEqual(["a"]);
    expect(await probe.names(there.at("/deep/a"))).toEqual(["b"]);
    expect(await probe.names(there.at("/deep/a/b"))).toEqual(["shown.txt"]);
    expect(await probe.text(there.at("/deep/a/b/shown.txt"))).toBe("shown");
    const gone = ["/secrets/key.pem", "/secrets/ring", "/deep/d", "/deep/d/e", "/deep/a/c", "/deep/a/b/not.txt"];
    for (const path of gone) expect(await probe.errnoOf("fstatat", there.at(path)), path).toBe("ENOENT");
  });
});

function hostInodes(lower: string): Set<number> {
  return new Set(Object.keys(treeState(lower)).map((path) => lstatSync(join(lower, path)).ino));
}
