import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { discardChanges, MountHost } from "@agentfense/server/isolation";
import { describe, expect, test } from "vitest";
import { aTickOfFileTimes } from "../../../../../test/support/eventually.ts";
import { rounds } from "../../../../../test/support/rounds.ts";
import { treeState } from "../../../../../test/support/tree.ts";
import { arrange, outcomes, shape } from "./arrangement.ts";

const GUARDED = [
  { pattern: "**/*", permission: "read" },
  { pattern: "/src/**", permission: "write" },
  { pattern: "**/.env", permission: "none", priority: 100 },
] as const;

describe("applyChanges", () => {
  test("leaves every policy of the project as it is, at any depth, whatever the rules", async () => {
    const lower = {
      ".agentfense.yaml": "top",
      kept: { ".agentfense.yaml": "strict", "a.txt": "a" },
      moved: { in: { ".agentfense.yaml": "strict" } },
      sub: { ".agentfense.yaml": "strict", "a.txt": "a" },
    };
    const place = arrange(lower);
    await place.inMount((at) => {
      for (const path of ["/.agentfense.yaml", "/sub/.agentfense.yaml"]) writeFileSync(at(path), "lax");
      mkdirSync(at("/new/deep"), { recursive: true });
      writeFileSync(at("/new/deep/.agentfense.yaml"), "lax");
      writeFileSync(at("/new/deep/b.txt"), "b");
      rmSync(at("/kept"), { recursive: true });
      execFileSync("mv", [at("/moved/in"), at("/moved/elsewhere")]);
    });
    expect(outcomes(await place.apply())).toEqual([
      "refused modified /.agentfense.yaml",
      "refused deleted /kept",
      "applied added /moved/elsewhere",
      "refused added /moved/elsewhere/.agentfense.yaml",
      "refused deleted /moved/in",
      "applied added /new",
      "applied added /new/deep",
      "refused added /new/deep/.agentfense.yaml",
      "applied added /new/deep/b.txt",
      "refused modified /sub/.agentfense.yaml",
    ]);
    expect(readFileSync(join(place.lower, "sub/.agentfense.yaml"), "utf8")).toBe("strict");
    expect(readFileSync(join(place.lower, "kept/.agentfense.yaml"), "utf8")).toBe("strict");
    expect(existsSync(join(place.lower, "new/deep/.agentfense.yaml"))).toBe(false);
  });

  test("makes the codebase what the mount showed, and empties the delta", async () => {
    const place = arrange({
      "a.txt": "old",
      keep: "same",
      gone: "x",
      tree: { x: { y: "1" }, z: "2" },
      swap: "file",
      dir: { f: "1" },
    });
    let seen = {};
    await place.inMount((at) => {
      writeFileSync(at("/a.txt"), "new");
      chmodSync(at("/keep"), 0o755);
      rmSync(at("/gone"));
      rmSync(at("/tree"), { recursive: true });
      mkdirSync(at("/tree"));
      writeFileSync(at("/tree/only"), "this");
      rmSync(at("/swap"));
      mkdirSync(at("/swap"));
      writeFileSync(at("/swap/inside"), "dir now");
      rmSync(at("/dir"), { recursive: true });
      writeFileSync(at("/dir"), "file now");
      symlinkSync("a.txt", at("/link"));
      mkdirSync(at("/empty"), { mode: 0o700 });
      seen = shape(at(""));
    });
    const rehearsed = await place.apply({ dryRun: true });
    expect(readFileSync(join(place.lower, "a.txt"), "utf8")).toBe("old");
    const report = await place.apply();
    expect(shape(place.lower)).toEqual(seen);
    expect(outcomes(report)).toEqual([
      "applied modified /a.txt",
      "applied modified /dir",
      "applied added /empty",
      "applied deleted /gone",
      "applied modified /keep",
      "applied added /link",
      "applied modified /swap",
      "applied added /swap/inside",
      "applied added /tree/only",
      "applied deleted /tree/x",
      "applied deleted /tree/z",
    ]);
    expect(outcomes(rehearsed)).toEqual(outcomes(report));
    expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
    expect((await place.apply()).changes).toEqual([]);
  });

  test("SYNC-01, 02: entries and whiteouts at paths that are not writable are refused and stay in the delta", async () => {
    const place = arrange(
      { "README.md": "r", ".env": "TOKEN", src: { ".env": "INNER", a: "a" } },
      {
        rules: GUARDED,
        tree: {
          "README.md": "changed",
          ".env": "planted",
          src: { ".env": "planted", a: "ok" },
          docs: { new: "n" },
          ".wh.x": "",
        },
      },
    );
    writeFileSync(join(place.lower, "x"), "x");
    const report = await place.apply();
    expect(report.changes.map(({ outcome, path, reason }) => [outcome, path, reason])).toEqual([
      ["refused", "/.env", "the rules hide this path"],
      ["refused", "/README.md", "level read"],
      ["refused", "/docs", "level read; so is all below"],
      ["refused", "/src/.env", "the rules hide this path"],
      ["applied", "/src/a", undefined],
      ["refused", "/x", "level read"],
    ]);
    expect(shape(place.lower)).toEqual({
      "/.env": "644 TOKEN",
      "/README.md": "644 r",
      "/src/": "755",
      "/src/.env": "644 INNER",
      "/src/a": "644 ok",
      "/x": "644 x",
    });
    expect(Object.keys(shape(join(place.delta, "tree")))).toEqual(
      expect.arrayContaining(["/.env", "/.wh.x", "/README.md", "/docs/new", "/src/.env"]),
    );
    expect(existsSync(join(place.delta, "tree/src/a"))).toBe(false);
  });

  test("SYNC-03: of a deleted directory only what is writable goes; it stays while it holds something", async () => {
    const place = arrange(
      { src: { old: { ".env": "TOKEN", a: "1", deep: { b: "2", ".env": "3" } }, all: { c: "1" } } },
      { rules: GUARDED },
    );
    await place.inMount((at) => {
      rmSync(at("/src/old"), { recursive: true });
      rmSync(at("/src/all"), { recursive: true });
    });
    const report = await place.apply();
    expect(outcomes(report)).toEqual(["applied deleted /src/all", "refused deleted /src/old"]);
    expect(report.changes[1]!.reason).toMatch("the directory holds what the rules protect: /src/old/");
    expect(shape(join(place.lower, "src"))).toEqual({
      "/old/": "755",
      "/old/.env": "644 TOKEN",
      "/old/deep/": "755",
      "/old/deep/.env": "644 3",
    });
    await place.inMount((at) => expect(readdirSync(at("/src"))).toEqual([]));
  });

  test("SYNC-04: a codebase file that is named like a whiteout is a file", async () => {
    const place = arrange({ "notes.txt": "n", ".wh.notes.txt": "w" });
    await place.inMount((at) => {
      rmSync(at("/.wh.notes.txt"));
      expect(() => writeFileSync(at("/.wh.other"), "")).toThrow();
    });
    await place.apply();
    expect(shape(place.lower)).toEqual({ "/notes.txt": "644 n" });
  });

  test("SYNC-05: whiteouts of `.`, `..`, the empty name and paths delete nothing", async () => {
    const long = (name: string): string =>
      `.wh..wh.long.${execFileSync("sha256sum", { input: name }).toString().slice(0, 64)}`;
    const climbing = ".wh./../../outside";
    const place = arrange(
      { sub: { file: "f" } },
      {
        tree: {
          ".wh.": "",
          ".wh..": "",
          ".wh...": "",
          ".wh..wh.long.0000": "sub",
          [long(climbing)]: climbing,
          [long("sub")]: "sub",
          sub: { ".wh.": "", ".wh..": "", ".wh...": "", [long("..")]: ".." },
        },
      },
    );
    writeFileSync(join(place.root, "outside"), "safe");
    const before = shape(place.lower);
    const report = await place.apply();
    expect(shape(place.lower)).toEqual(before);
    expect(readFileSync(join(place.root, "outside"), "utf8")).toBe("safe");
    expect(new Set(report.changes.map(({ outcome }) => outcome))).toEqual(new Set(["refused"]));
    expect(report.changes).toHaveLength(10);
  });

  test("tells how far it is, change by change", async () => {
    const place = arrange({ a: "1", b: "1" });
    await place.inMount((at) => {
      for (const path of ["/a", "/b", "/c"]) writeFileSync(at(path), "2");
    });
    const told: number[] = [];
    await place.apply({ onProgress: (done) => told.push(done) });
    expect(told).toEqual([1, 2, 3]);
  });

  test("SYNC-06, 08: a symlink is recreated as it is, and replaced, never followed", async () => {
    const place = arrange({});
    const host = join(place.root, "host-file");
    writeFileSync(host, "host");
    await place.inMount((at) => symlinkSync(host, at("/x")));
    const first = await place.apply();
    expect(first.changes).toMatchObject([{ path: "/x", outcome: "applied", sensitive: true, type: "symlink" }]);
    await place.inMount((at) => {
      rmSync(at("/x"));
      writeFileSync(at("/x"), "mine");
    });
    await place.apply();
    expect(shape(place.lower)).toEqual({ "/x": "644 mine" });
    expect(readFileSync(host, "utf8")).toBe("host");
  });

  test("SYNC-07: a directory where the first apply put a symlink to a host directory lands in its own place", async () => {
    const place = arrange({});
    const host = join(place.root, "host");
    mkdirSync(host);
    await place.inMount((at) => symlinkSync(host, at("/x")));
    await place.apply();
    await place.inMount((at) => {
      rmSync(at("/x"));
      mkdirSync(at("/x"));
      writeFileSync(at("/x/authorized_keys"), "key");
    });
    await place.apply();
    expect(readdirSync(host)).toEqual([]);
    expect(shape(place.lower)).toEqual({ "/x/": "755", "/x/authorized_keys": "644 key" });
  });

  test("a directory of the codebase that became a symlink on the host is not entered", async () => {
    const place = arrange({ sub: { a: "1" } });
    const host = join(place.root, "host");
    mkdirSync(host);
    await place.inMount((at) => writeFileSync(at("/sub/a"), "2"));
    rmSync(join(place.lower, "sub"), { recursive: true });
    symlinkSync(host, join(place.lower, "sub"));
    await place.apply();
    expect(readdirSync(host)).toEqual([]);
    expect(shape(place.lower)).toEqual({ "/sub/": "755", "/sub/a": "644 2" });
  });

  test("SYNC-09: a file does not take the place of a directory that holds something hidden, and the rest goes on", async () => {
    const place = arrange(
      { src: { d: { ".env": "TOKEN", a: "1" }, e: { b: "1" }, l: { c: "1" } } },
      { rules: GUARDED },
    );
    await place.inMount((at) => {
      for (const name of ["d", "e", "l"]) rmSync(at(`/src/${name}`), { recursive: true });
      writeFileSync(at("/src/d"), "file");
      writeFileSync(at("/src/e"), "file");
      symlinkSync("e", at("/src/l"));
    });
    const report = await place.apply();
    expect(outcomes(report)).toEqual(["refused modified /src/d", "applied modified /src/e", "applied modified /src/l"]);
    expect(shape(join(place.lower, "src"))).toEqual({
      "/d/": "755",
      "/d/.env": "644 TOKEN",
      "/d/a": "644 1",
      "/e": "644 file",
      "/l": "-> e",
    });
  });

  test("SYNC-10: a hard link at a protected path keeps its content and mode", async () => {
    const place = arrange({ src: { a: "shared", b: "shared too" }, protected: {} }, { rules: GUARDED });
    for (const name of ["a", "b"]) linkSync(join(place.lower, "src", name), join(place.lower, "protected", name));
    await place.inMount((at) => {
      writeFileSync(at("/src/a"), "mine");
      chmodSync(at("/src/b"), 0o777);
    });
    await place.apply();
    expect(shape(place.lower)).toMatchObject({
      "/src/a": "644 mine",
      "/src/b": "777 shared too",
      "/protected/a": "644 shared",
      "/protected/b": "644 shared too",
    });
  });

  test("SYNC-13, 14: fifos, sockets and devices are skipped and reported; nothing blocks", async () => {
    const place = arrange({ f: "file" }, { tree: {} });
    const tree = join(place.delta, "tree");
    execFileSync("mkfifo", [join(tree, "f"), join(tree, "pipe")]);
    execFileSync("mknod", [join(tree, "null"), "c", "1", "3"]);
    execFileSync("python3", [
      "-c",
      "import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])",
      join(tree, "s"),
    ]);
    const report = await place.apply();
    expect(outcomes(report)).toEqual([
      "refused modified /f",
      "refused added /null",
      "refused added /pipe",
      "refused added /s",
    ]);
    expect(shape(place.lower)).toEqual({ "/f": "644 file" });
  });

  test("SYNC-15: setuid, setgid, sticky and the owner are not carried over; times are", async () => {
    const place = arrange({ "old.txt": "old", sub: {} }, { tree: { "old.txt": "new", sub: { tool: "#!" }, dir: {} } });
    const tree = join(place.delta, "tree");
    chownSync(join(place.lower, "old.txt"), 1234, 1235);
    chownSync(join(place.lower, "sub"), 1236, 1237);
    for (const name of ["old.txt", "sub/tool", "dir"]) {
      chownSync(join(tree, name), 4321, 4321);
      chmodSync(join(tree, name), 0o7755);
      utimesSync(join(tree, name), 1000, 2000);
    }
    await place.apply();
    const facts = (path: string): unknown[] => {
      const { mode, uid, gid, mtimeMs } = statSync(join(place.lower, path));
      return [(mode & 0o7777).toString(8), uid, gid, mtimeMs];
    };
    expect(facts("old.txt")).toEqual(["755", 1234, 1235, 2_000_000]);
    expect(facts("sub/tool")).toEqual(["755", 1236, 1237, 2_000_000]);
    expect(facts("dir")).toEqual(["755", 0, 0, 2_000_000]);
  });

  test("SYNC-16: holes stay holes", async () => {
    const place = arrange({});
    await place.inMount(async (at) => {
      await using handle = await open(at("/sparse"), "w");
      await handle.write("end", 3 * 2 ** 30);
      writeFileSync(at("/hole"), "");
      truncateSync(at("/hole"), 2 ** 40);
    });
    await place.apply();
    const [sparse, hole] = ["sparse", "hole"].map((name) => statSync(join(place.lower, name)));
    expect([sparse!.size, hole!.size]).toEqual([3 * 2 ** 30 + 3, 2 ** 40]);
    expect(sparse!.blocks * 512).toBeLessThan(1 << 20);
    expect(hole!.blocks).toBe(0);
    await using handle = await open(join(place.lower, "sparse"));
    expect((await handle.read(Buffer.alloc(3), 0, 3, 3 * 2 ** 30)).buffer.toString()).toBe("end");
  });

  test("SYNC-19: what was only copied up is not written and leaves the delta", async () => {
    const place = arrange({ a: "a", b: "b" });
    await place.inMount(async (at) => {
      await (await open(at("/a"), "r+")).close();
      chmodSync(at("/b"), 0o644);
    });
    expect(readdirSync(join(place.delta, "tree"))).toEqual(["a", "b"]);
    const before = treeState(place.lower);
    expect((await place.apply()).changes).toEqual([]);
    expect(treeState(place.lower)).toEqual(before);
    expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
  });

  test("SYNC-21: a codebase that is gone, or a symlink, is refused", async () => {
    const place = arrange({}, { tree: { a: "1" } });
    const moved = join(place.root, "moved");
    renameSync(place.lower, moved);
    await expect(place.apply()).rejects.toMatchObject({ code: "CODEBASE_UNUSABLE" });
    symlinkSync(moved, place.lower);
    await expect(place.apply()).rejects.toMatchObject({ code: "CODEBASE_UNUSABLE" });
    expect(readdirSync(moved)).toEqual([]);
  });

  test("SYNC-12: a delta in use by a live mount is refused with a clear error", async () => {
    const place = arrange({ a: "1" });
    await place.inMount(async (at) => {
      writeFileSync(at("/a"), "2");
      await expect(place.apply()).rejects.toMatchObject({
        code: "DELTA_IN_USE",
        message: `the delta ${place.delta} is in use: unmount the workspace first`,
      });
    });
    expect(readFileSync(join(place.lower, "a"), "utf8")).toBe("1");
  });

  test("a place without a delta is refused and stays as it is", async () => {
    const place = arrange({});
    await expect(place.apply()).rejects.toMatchObject({ code: "NOT_A_DELTA" });
    expect(readdirSync(place.delta)).toEqual([]);
  });

  test("tells when a file of the codebase changed after the sandbox had taken its copy", async () => {
    const place = arrange({ a: "1", b: "1", c: "1", d: "1" });
    await place.inMount((at) => {
      for (const path of ["/a", "/b"]) writeFileSync(at(path), "sandbox");
      for (const path of ["/c", "/d"]) rmSync(at(path));
    });
    await aTickOfFileTimes();
    for (const name of ["a", "c"]) writeFileSync(join(place.lower, name), "host");
    const report = await place.apply();
    expect(report.changes.map(({ path, overwroteNewer }) => [path, overwroteNewer])).toEqual([
      ["/a", true],
      ["/b", false],
      ["/c", true],
      ["/d", false],
    ]);
  });

  test("with paths: entries of a directory that was deleted, or is a file now, go one by one", async () => {
    const place = arrange({ gone: { a: "1", sub: { b: "1", c: "1" } }, now: { d: "1", e: "1" } });
    await place.inMount((at) => {
      rmSync(at("/gone"), { recursive: true });
      rmSync(at("/now"), { recursive: true });
      writeFileSync(at("/now"), "a file");
    });
    expect(outcomes(await place.apply({ paths: ["/gone/sub/b", "/now/e"] }))).toEqual([
      "applied deleted /gone/sub/b",
      "applied deleted /now/e",
    ]);
    expect(Object.keys(shape(place.lower))).toEqual([
      "/gone/",
      "/gone/a",
      "/gone/sub/",
      "/gone/sub/c",
      "/now/",
      "/now/d",
    ]);
    await place.apply();
    expect(shape(place.lower)).toEqual({ "/now": "644 a file" });
  });

  test("with paths: those and what is below, also out of a directory that was deleted and made anew", async () => {
    const place = arrange({ src: { a: "1", b: "1", sub: { c: "1", d: "1" } }, other: "1" });
    let seen = {};
    await place.inMount((at) => {
      rmSync(at("/src"), { recursive: true });
      mkdirSync(at("/src/sub"), { recursive: true });
      for (const path of ["/src/a", "/src/sub/c", "/src/sub/new", "/other"]) writeFileSync(at(path), "2");
      seen = shape(at(""));
    });
    await expect(place.apply({ paths: ["src/a", "src/none"] })).rejects.toMatchObject({ code: "NO_CHANGE" });
    expect(outcomes(await place.apply({ paths: ["src/a", "/src/sub/c"] }))).toEqual([
      "applied modified /src/a",
      "applied modified /src/sub/c",
    ]);
    expect(shape(place.lower)).toMatchObject({ "/src/b": "644 1", "/src/sub/d": "644 1", "/other": "644 1" });
    await place.inMount((at) => expect(shape(at(""))).toEqual(seen));
    expect(outcomes(await place.apply({ paths: ["src/b"] }))).toEqual(["applied deleted /src/b"]);
    await place.inMount((at) => expect(shape(at(""))).toEqual(seen));
    expect(outcomes(await place.apply())).toEqual([
      "applied modified /other",
      "applied deleted /src/sub/d",
      "applied added /src/sub/new",
    ]);
    expect(shape(place.lower)).toEqual(seen);
    expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
  });

  test("a whiteout that lies beside an entry does not delete the name when the entry leaves the delta", async () => {
    const place = arrange({ a: "1", d: { x: "1" } }, { tree: { a: "2", ".wh.a": "", d: { x: "2" }, ".wh.d": "" } });
    await place.apply();
    expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
    await place.inMount((at) => expect(shape(at(""))).toEqual({ "/a": "644 2", "/d/": "755", "/d/x": "644 2" }));
  });

  test("names that are not UTF-8, long ones, and deep paths arrive as they are", async () => {
    const long = "n".repeat(255);
    const place = arrange({ [long]: "1", "b\udcff": "1" });
    const deep = "/d".repeat(300);
    await place.inMount((at) => {
      rmSync(at(`/${long}`));
      writeFileSync(Buffer.concat([Buffer.from(at("/c")), Buffer.of(0xfe)]), "2");
      rmSync(Buffer.concat([Buffer.from(at("/b")), Buffer.of(0xff)]));
      mkdirSync(at(deep), { recursive: true });
      writeFileSync(at(`${deep}/leaf`), "deep");
    });
    await place.apply();
    expect(readdirSync(place.lower, { encoding: "latin1" })).toEqual(["c\u00fe", "d"]);
    expect(readFileSync(`${place.lower}${deep}/leaf`, "utf8")).toBe("deep");
  });

  test("one failure does not stop the rest", async () => {
    const place = arrange({ blocked: {}, z: "1" }, { tree: { blocked: { a: "1" }, z: "2" } });
    execFileSync("mount", ["-t", "tmpfs", "-o", "ro,mode=755", "none", join(place.lower, "blocked")]);
    try {
      const report = await place.apply();
      expect(report.changes.map(({ path, outcome, reason }) => [path, outcome, reason])).toEqual([
        ["/blocked/a", "failed", "its file system is read-only"],
        ["/z", "applied", undefined],
      ]);
    } finally {
      execFileSync("umount", [join(place.lower, "blocked")]);
    }
    expect(readFileSync(join(place.delta, "tree/blocked/a"), "utf8")).toBe("1");
  });

  test("an abort ends it between entries", async () => {
    const place = arrange({}, { tree: { a: "1" } });
    await expect(place.apply({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: "AbortError" });
    expect(readdirSync(place.lower)).toEqual([]);
  });

  test("many files get their names together, are reported in the order of their paths, and an abort between leaves no half", async () => {
    const files = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`f${1000 + index}`, `new ${index}`]));
    const tree = { a: files, b: { c: files, f1000: "1" }, f1: "last" };
    const place = arrange({ b: { f1000: "0" } }, { tree });
    const stop = new AbortController();
    const onProgress = (done: number): void => {
      if (done === 200) stop.abort();
    };
    await expect(place.apply({ onProgress, signal: stop.signal })).rejects.toMatchObject({ name: "AbortError" });
    const first = shape(place.lower);
    expect(Object.keys(first).length).toBeGreaterThan(150);
    expect(Object.keys(first).length).toBeLessThan(302);
    const { changes } = await place.apply();
    const paths = changes.map(({ path }) => path).filter((path) => path.includes("/f"));
    expect(paths).toEqual([...paths].sort());
    expect(changes.every(({ outcome }) => outcome === "applied")).toBe(true);
    const whole = arrange(tree);
    expect(shape(place.lower)).toEqual(shape(whole.lower));
    for (const [path, entry] of Object.entries(first)) {
      if (path !== "/b/f1000" && !path.endsWith("/")) expect(entry).toBe(shape(whole.lower)[path]);
    }
    expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
  });

  test("removes what a killed apply left, and does not take such a name from a delta", async () => {
    const left = ".agentfense-apply-0123456789abcdef";
    const place = arrange(
      { [left]: "half", a: "1" },
      { tree: { a: "2", ".agentfense-apply-ffffffffffffffff": "planted" } },
    );
    expect(outcomes(await place.apply())).toEqual([
      "refused added /.agentfense-apply-ffffffffffffffff",
      "applied modified /a",
    ]);
    expect(shape(place.lower)).toEqual({ "/a": "644 2" });
  });

  test("only one apply at a time writes to a codebase", async () => {
    const place = arrange({ a: "1" }, { tree: { big: "x" } });
    const other = arrange({}, { tree: { a: "2" } });
    const results = await Promise.allSettled([place.apply(), other.apply({ lower: place.lower })]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(results[1]).toMatchObject({ reason: { code: "CODEBASE_IN_USE" } });
    expect(lstatSync(join(place.lower, "a")).size).toBe(1);
  });

  test("the applied codebase can be mounted again at once", async () => {
    const place = arrange({ a: "1" });
    await place.inMount((at) => writeFileSync(at("/a"), "2"));
    await place.apply();
    await using host = await MountHost.start();
    await using mount = await host.mount({
      mountPoint: join(place.root, "mnt"),
      lowers: [place.lower],
      rules: [{ pattern: "**/*", permission: "read" }],
    });
    expect(readFileSync(join(mount.mountPoint, "a"), "utf8")).toBe("2");
  });

  test("a full disk fails one file, which stays the old one, and nothing half is left", async () => {
    const place = arrange({}, { tree: { big: "n".repeat(3 << 20), small: "new" } });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "none", place.lower]);
    try {
      writeFileSync(join(place.lower, "big"), "old");
      const report = await place.apply();
      expect(report.changes.map(({ path, outcome, reason }) => [path, outcome, reason])).toEqual([
        ["/big", "failed", "the disk is full"],
        ["/small", "applied", undefined],
      ]);
      expect(shape(place.lower)).toEqual({ "/big": "644 old", "/small": "644 new" });
    } finally {
      execFileSync("umount", [place.lower]);
    }
    expect(readdirSync(join(place.delta, "tree"))).toEqual(["big"]);
  });

  test("SYNC-13: entries that turn into links and back during the apply never bring in what a link points to", async () => {
    const place = arrange({}, { tree: { sub: {} } });
    const secret = join(place.root, "secret");
    writeFileSync(secret, "host secret");
    const flipper = spawn("python3", ["-c", FLIPPER, join(place.delta, "tree"), secret, place.root], { stdio: "pipe" });
    try {
      const seen = new Set<string>();
      for (let applies = 0; applies < rounds(25) || seen.size <= 2; applies++) {
        await place.apply();
        for (const [path, what] of Object.entries(shape(place.lower))) seen.add(`${path} ${what}`);
      }
      expect([...seen].filter((each) => each.includes("host secret"))).toEqual([]);
    } finally {
      flipper.kill("SIGKILL");
      await once(flipper, "exit");
    }
    expect(readdirSync(place.root).sort()).toEqual(["delta", "lower", "mnt", "secret"]);
    expect(readFileSync(secret, "utf8")).toBe("host secret");
  });

  test("a tree deeper than any path is applied down to a limit, and the rest reported", async () => {
    const place = arrange({}, { tree: { sibling: "1" } });
    execFileSync("python3", ["-c", DIGGER, join(place.delta, "tree"), "1200"]);
    const report = await place.apply();
    expect(report.changes.at(-2)).toMatchObject({ outcome: "failed", reason: "more than 1000 directories deep" });
    expect(report.changes.at(-1)).toMatchObject({ outcome: "applied", path: "/sibling" });
    expect(await discardChanges({ delta: place.delta })).toEqual({ discarded: ["/"], failed: [] });
    expect(readdirSync(join(place.delta, "tree"))).toEqual([]);
  });
});

/** In the delta: `x`, a file or a link to a secret, and `d`, a directory or a link to one outside, again and again. */
const FLIPPER = `
import os, sys, shutil
tree, secret, outside = sys.argv[1:]
os.chdir(tree)
def swap(make, name):
    try:
        make(".wh.tmp")
        os.rename(".wh.tmp", name)
    except OSError:
        if os.path.isdir(name) and not os.path.islink(name): shutil.rmtree(name, ignore_errors=True)
        else:
            try: os.unlink(name)
            except OSError: pass
def file(name):
    with open(name, "w") as f: f.write("plain")
def directory(name):
    os.mkdir(name)
    file(name + "/planted")
while True:
    swap(file, "x"); swap(directory, "d")
    swap(lambda name: os.symlink(secret, name), "x"); swap(lambda name: os.symlink(outside, name), "d")
    try: os.unlink(".wh.tmp")
    except OSError: shutil.rmtree(".wh.tmp", ignore_errors=True)
`;

const DIGGER = `
import os, sys
os.chdir(sys.argv[1])
for _ in range(int(sys.argv[2])):
    os.mkdir("deep")
    os.chdir("deep")
`;
