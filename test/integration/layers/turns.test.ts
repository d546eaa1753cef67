import { execFile } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Rule } from "@agentfense/permission";
import { collectChanges, MountHost, type WorkspaceMount, type WorkspaceSpec } from "@agentfense/server/isolation";
import { afterEach, describe, expect, test } from "vitest";
import { WRITE_ALL } from "./place.ts";

const isRoot = process.geteuid?.() === 0;
const reason = isRoot ? undefined : "mounting without a launcher of its own needs root";

/** More than any turn may deal with, and few enough to be made quickly. */
const MANY = 2500;
/** A turn ends when it has dealt with 512 entries, and a directory is read some 500 at a time. */
const LONGEST_TURN = 2048;

const HIDES_KEYS: readonly Rule[] = [...WRITE_ALL, { pattern: "**/*.key", permission: "none" }];

const places: string[] = [];

afterEach(() => {
  for (const place of places.splice(0)) rmSync(place, { recursive: true, force: true });
});

interface Place {
  readonly lower: string;
  /** The tree of the delta. */
  readonly tree: string;
  readonly work: string;
  readonly spec: WorkspaceSpec;
  at(path: string): string;
}

function place(rules: readonly Rule[] = WRITE_ALL): Place {
  const root = mkdtempSync(join(tmpdir(), "agentfense-turns-"));
  places.push(root);
  for (const name of ["lower", "delta", "delta/tree", "delta/work", "mnt"]) mkdirSync(join(root, name));
  const [lower, delta, mountPoint] = [join(root, "lower"), join(root, "delta"), join(root, "mnt")];
  return {
    lower,
    tree: join(delta, "tree"),
    work: join(delta, "work"),
    spec: { mountPoint, lowers: [lower], delta, rules },
    at: (path) => join(mountPoint, path),
  };
}

function fill(directory: string, suffix = "", count = MANY): void {
  mkdirSync(directory, { recursive: true });
  for (let i = 0; i < count; i++) closeSync(openSync(join(directory, `f${i}${suffix}`), "w"));
}

/** Mounts on the only thread of a host; what happens then must not take long turns. */
async function mounted<T>(
  spec: WorkspaceSpec,
  use: (mount: WorkspaceMount, host: MountHost) => Promise<T> | T,
): Promise<T> {
  await using host = await MountHost.start({ threads: 1 });
  await using mount = await host.mount(spec);
  const result = await use(mount, host);
  expect(host.counts().longestTurn).toBeLessThan(LONGEST_TURN);
  return result;
}

describe.skipIf(reason !== undefined)(`no walk over many entries keeps others waiting${reason ?? ""}`, () => {
  test("a directory that the sandbox made moves without a look at what is in it", async () => {
    const { spec, at } = place(HIDES_KEYS);
    await mounted(spec, (_mount, host) => {
      fill(at("a/b"), "", 600);
      const before = host.counts().longestTurn;
      for (let i = 0; i < 5; i++) {
        renameSync(at("a"), at("longer-name"));
        renameSync(at("longer-name"), at("a"));
      }
      expect(host.counts().longestTurn).toBe(before);
      expect(before).toBeLessThan(100);
      expect(readdirSync(at("a/b"))).toHaveLength(600);
    });
  });

  test("a directory of an earlier mount moves after a walk in turns, when all that shows of it may", async () => {
    const rules: readonly Rule[] = [
      ...HIDES_KEYS,
      { pattern: "**/*.lock", permission: "read" },
      { pattern: "/shown/**/*.key", permission: "write", priority: 1 },
    ];
    const { spec, tree, at } = place(rules);
    fill(join(tree, "a/b"));
    writeFileSync(join(tree, "a/b/last.key"), "");
    fill(join(tree, "guarded/b"));
    writeFileSync(join(tree, "guarded/b/last.lock"), "");
    await mounted(spec, () => {
      renameSync(at("a"), at("moved"));
      expect(existsSync(join(tree, "moved/b/last.key"))).toBe(true);
      mkdirSync(at("shown"));
      renameSync(at("moved"), at("shown/a"));
      expect(statSync(at(`shown/a/b/f${MANY - 1}`)).isFile()).toBe(true);
      expect([existsSync(at("shown/a/b/last.key")), existsSync(join(tree, "shown/a/b/last.key"))]).toEqual([
        false,
        false,
      ]);
      expect(() => renameSync(at("guarded"), at("elsewhere"))).toThrow(/EXDEV/);
    });
  });

  test("nothing comes into a directory that is being looked through before it moves", async () => {
    const rules: readonly Rule[] = [...WRITE_ALL, { pattern: "/kept/**/*.lock", permission: "read" }];
    const { spec, tree, at } = place(rules);
    fill(join(tree, "a/sub/deep"));
    mkdirSync(join(tree, "kept"));
    await mounted(spec, async () => {
      const sub = openSync(at("a/sub"), "r");
      const attempts = [
        rename(at("a"), at("kept/a")),
        ...[0, 1, 2, 3].map((i) => writeFile(`/proc/self/fd/${sub}/${i}.lock`, "")),
      ];
      const [moved, ...made] = (await Promise.allSettled(attempts)).map(({ status }) => status === "fulfilled");
      closeSync(sub);
      const laundered = moved ? readdirSync(join(tree, "kept/a/sub")).filter((name) => name.endsWith(".lock")) : [];
      expect(laundered).toEqual([]);
      expect(moved).toBe(!made.some(Boolean));
    });
  });

  test("listing", async () => {
    const { spec, lower, tree, at } = place(HIDES_KEYS);
    fill(join(lower, "big"));
    fill(join(lower, "big"), ".key");
    fill(join(tree, "big"), "-own");
    await mounted(spec, () => {
      const names = readdirSync(at("big"));
      expect([names.length, new Set(names).size]).toEqual([2 * MANY, 2 * MANY]);
    });
  });

  test("names that are deleted in a directory of the delta are not all read to find one", async () => {
    const { spec, lower, tree, at } = place();
    fill(join(lower, "big"));
    mkdirSync(join(tree, "big"));
    for (let i = 1; i < MANY; i++) closeSync(openSync(join(tree, `big/.wh.f${i}`), "w"));
    await mounted(spec, (_mount, host) => {
      expect([existsSync(at("big/f0")), existsSync(at("big/f1"))]).toEqual([true, false]);
      expect(host.counts().longestTurn).toBeLessThan(100);
      rmSync(at("big/f0"));
      rmdirSync(at("big"));
      expect(readdirSync(at("."))).toEqual([]);
    });
  });

  test("removing a directory that only hidden entries are in", async () => {
    const { spec, lower, at } = place(HIDES_KEYS);
    fill(join(lower, "big"), ".key");
    await mounted(spec, () => {
      rmdirSync(at("big"));
      expect(existsSync(at("big"))).toBe(false);
      expect(readdirSync(join(lower, "big"))).toHaveLength(MANY);
    });
  });

  test("whether a hidden directory leads to something visible", async () => {
    const { spec, lower, at } = place([{ pattern: "**/*.md", permission: "write" }]);
    fill(join(lower, "nothing/below"));
    fill(join(lower, "something/below"));
    fill(join(lower, "something/below/down"));
    writeFileSync(join(lower, "something/below/down/z.md"), "");
    await mounted(spec, () => {
      expect(existsSync(at("nothing"))).toBe(false);
      expect(readdirSync(at("."))).toEqual(["something"]);
      expect(readdirSync(at("something/below"))).toEqual(["down"]);
      rmSync(at("something/below/down/z.md"));
      expect(existsSync(at("something"))).toBe(false);
      expect(readdirSync(at("."))).toEqual([]);
    });
  });

  test("discarding", async () => {
    const { spec, lower, tree, work, at } = place();
    fill(join(lower, "big"), "", 10);
    fill(join(tree, "big"));
    fill(join(tree, "other"));
    await mounted(spec, async (mount) => {
      expect(readdirSync(at("big"))).toHaveLength(MANY);
      const open = openSync(at("other/f1"), "w");
      expect(await mount.discard(undefined)).toEqual({
        discarded: ["/"],
        failed: [{ path: "/other/f1", reason: "open for writing" }],
      });
      closeSync(open);
      expect(readdirSync(at("big"))).toHaveLength(10);
      expect(readdirSync(at("other"))).toEqual(["f1"]);
      expect([readdirSync(tree), readdirSync(work)]).toEqual([["other"], []]);
    });
  });

  test("settling what the codebase has too", async () => {
    const { spec, lower, tree, at } = place();
    mkdirSync(join(lower, "big"));
    fill(join(tree, "big"));
    const { settled } = await collectChanges({ delta: spec.delta!, lower, rules: WRITE_ALL });
    fill(join(lower, "big"));
    await mounted(spec, async (mount) => {
      expect(await mount.settle(settled)).toEqual([]);
      expect(readdirSync(tree)).toEqual([]);
      expect(readdirSync(at("big"))).toHaveLength(MANY);
    });
  });

  test("looking again at a codebase, and being told that much of it is gone", async () => {
    const { spec, lower, at } = place();
    fill(join(lower, "big"));
    await mounted(spec, async (mount) => {
      for (const name of readdirSync(at("big"))) statSync(at(`big/${name}`));
      rmSync(join(lower, "big/f1"));
      await mount.lookAgain();
      expect(existsSync(at("big/f1"))).toBe(false);
      expect(readdirSync(at("big"))).toHaveLength(MANY - 1);
      rmSync(join(lower, "big"), { recursive: true });
      await mount.codebaseChanged(["/big"]);
      expect(existsSync(at("big"))).toBe(false);
    });
  });

  test("changing the rules", async () => {
    const { spec, lower, tree, at } = place();
    fill(join(lower, "big"));
    fill(join(tree, "own"));
    await mounted(spec, async (mount) => {
      for (const name of readdirSync(at("big"))) statSync(at(`big/${name}`));
      await mount.updateRules([...WRITE_ALL, { pattern: "/own/f1", permission: "none" }]);
      expect(existsSync(at("own/f1"))).toBe(false);
      expect(readdirSync(at("own"))).toHaveLength(MANY - 1);
    });
  });

  test("mounting a delta that a killed process left work in", async () => {
    const { spec, work, tree } = place(HIDES_KEYS);
    fill(join(work, "tmp-1-1/below"));
    fill(join(tree, "own"));
    await mounted({ ...spec, quota: { files: MANY + 1 } }, async () => {
      expect(readdirSync(work)).toEqual([]);
      await expect(mkdir(join(spec.mountPoint, "more"))).rejects.toThrow(/-122|EDQUOT/);
    });
  });
});

const run = promisify(execFile);

/** Makes directories in directories from where it is, as long as it can; prints how many, and the errno. */
const DIG = `
import errno, os, sys
os.chdir(sys.argv[1])
for level in range(int(sys.argv[2])):
    try:
        os.mkdir("d"); os.chdir("d")
    except OSError as error:
        print(level, errno.errorcode[error.errno]); break
else:
    print(level + 1, "done")
`;

async function dig(directory: string, levels: number): Promise<string> {
  const { stdout } = await run("python3", ["-c", DIG, directory, String(levels)]);
  return stdout.trim();
}

describe.skipIf(reason !== undefined)(`trees have a bottom${reason ?? ""}`, () => {
  test("a sandbox makes no more than 1,000 levels, and none by moving trees into trees", async () => {
    const { spec, at, tree } = place(HIDES_KEYS);
    await mounted(spec, async (mount) => {
      mkdirSync(at("deep"));
      expect(await dig(at("deep"), 20_000)).toBe("999 ENAMETOOLONG");
      mkdirSync(at("half"));
      expect(await dig(at("half"), 600)).toBe("600 done");
      const bottom = "d/".repeat(600);
      mkdirSync(at("other"));
      expect(await dig(at("other"), 300)).toBe("300 done");
      expect(() => renameSync(at("deep"), at(`half/${bottom}deep`))).toThrow(/ENAMETOOLONG/);
      renameSync(at("other"), at(`half/${bottom}other`));
      mkdirSync(at("outer"));
      expect(await dig(at("outer"), 200)).toBe("200 done");
      expect(() => renameSync(at("half"), at(`outer/${"d/".repeat(200)}half`))).toThrow(/ENAMETOOLONG/);
      renameSync(at("half"), at("outer/half"));
      expect(statSync(at(`outer/half/${bottom}other`)).isDirectory()).toBe(true);
      expect(await mount.discard(["/deep"])).toEqual({ discarded: ["/deep"], failed: [] });
      expect(readdirSync(tree).sort()).toEqual(["outer"]);
    });
  });

  test("a path gets no longer than 65,536 bytes", async () => {
    const { spec, at } = place();
    await mounted(spec, () => {
      const name = "n".repeat(250);
      let here = at(".");
      let levels = 0;
      const opened: number[] = [];
      try {
        for (; levels < 400; levels++) {
          mkdirSync(`${here}/${name}`);
          opened.push(openSync(`${here}/${name}`, "r"));
          here = `/proc/self/fd/${opened.at(-1)}`;
        }
      } catch (error) {
        expect(String(error)).toMatch(/ENAMETOOLONG/);
      } finally {
        for (const fd of opened) closeSync(fd);
      }
      expect(levels).toBe(Math.floor(65_536 / 251));
    });
  });

  test("a delta that came from elsewhere, deeper than any stack, is mounted, told of and thrown away", async () => {
    const { spec, lower, tree, at } = place(HIDES_KEYS);
    mkdirSync(join(tree, "deep"));
    expect(await dig(join(tree, "deep"), 6000)).toBe("6000 done");
    const { changes } = await collectChanges({ delta: spec.delta!, lower, rules: HIDES_KEYS });
    expect(changes.length).toBeGreaterThan(900);
    await mounted({ ...spec, quota: { files: 100_000 } }, async (mount) => {
      expect(await dig(at("deep"), 1)).toBe("0 EEXIST");
      expect(statSync(at(`deep/${"d/".repeat(1500)}`)).isDirectory()).toBe(true);
      expect(() => renameSync(at("deep"), at("a-longer-name"))).toThrow(/ENAMETOOLONG/);
      expect(await mount.discard(undefined)).toEqual({ discarded: ["/"], failed: [] });
      expect(readdirSync(at("."))).toEqual([]);
    });
  });
});
