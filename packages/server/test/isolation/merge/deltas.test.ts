import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { chmod, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Rule } from "@agentfense/permission";
import { type MergeDelta, type MergeReport, type MergeSpec, mergeDeltas } from "@agentfense/server/isolation";
import { describe, expect, onTestFinished, test } from "vitest";
import { aTickOfFileTimes } from "../../../../../test/support/eventually.ts";
import { mountHostOfProcess } from "../../../../../test/support/mount-host.ts";
import { type Tree, writeTree } from "../../../../../test/support/tree.ts";
import { shape, WRITE_ALL } from "../changes/arrangement.ts";

type Work = (at: (path: string) => string) => void | Promise<void>;

/** A directory, and a delta over it for each piece of work, which was done in a real mount. */
async function arrange(codebase: Tree, works: Record<string, Work>, rules: Record<string, readonly Rule[]> = {}) {
  const root = mkdtempSync(join(tmpdir(), "agentfense-merge-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [lower, mountPoint] = [join(root, "lower"), join(root, "mnt")];
  for (const path of [lower, mountPoint]) mkdirSync(path);
  writeTree(lower, codebase);
  await aTickOfFileTimes(); // what is of one tick with the work counts as changed since
  const host = await mountHostOfProcess();
  const deltas: MergeDelta[] = [];
  for (const [name, work] of Object.entries(works)) {
    const delta = join(root, name);
    mkdirSync(delta);
    const ruled = rules[name] ?? WRITE_ALL;
    {
      await using mount = await host.mount({ mountPoint, lowers: [lower], delta, rules: ruled });
      await work((path) => mount.mountPoint + path);
    }
    deltas.push({ name, delta, lower, rules: ruled });
  }
  return {
    root,
    lower,
    merge: async (more: Partial<MergeSpec> = {}) =>
      await mergeDeltas({ deltas, into: lower, intoName: "project", ...more }),
    left: (name: string) => readdirSync(join(root, name, "tree")),
  };
}

const changesOf = ({ changes }: MergeReport): string[] =>
  changes.map(({ outcome, kind, path, from }) => `${outcome} ${kind} ${path} from ${from.join(" + ")}`);
const conflictsOf = ({ conflicts }: MergeReport): string[] =>
  conflicts.map(
    ({ kind, path, sides, settled }) => `${kind} ${path}: ${sides.join(" | ")}${settled ? ` (${settled})` : ""}`,
  );

const lines = (...all: (string | number)[]): string => all.map((one) => `${one}\n`).join("");
const TEN = lines(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);

describe("merging deltas into their directory", () => {
  test("brings together what several did, line by line where they met, and empties the deltas", async () => {
    const { lower, merge, left } = await arrange(
      { src: { "list.txt": TEN }, "old.txt": "x", "tool.sh": "#!\n", gone: { a: "a", b: "b" }, empty: {} },
      {
        async a(at) {
          await writeFile(at("/src/list.txt"), TEN.replace("2\n", "two\n"));
          await rm(at("/old.txt"));
          await rm(at("/gone"), { recursive: true });
          await symlink("src/list.txt", at("/link"));
        },
        async b(at) {
          await writeFile(at("/src/list.txt"), TEN.replace("9\n", "nine\n"));
          await writeFile(at("/new.txt"), "new");
          await writeFile(at("/gone/c"), "c");
          await chmod(at("/tool.sh"), 0o755);
        },
      },
    );
    const rehearsal = await merge({ dryRun: true });
    expect(shape(lower)["/src/list.txt"]).toBe(`644 ${TEN}`);
    const report = await merge();
    expect(changesOf(report)).toEqual([
      "merged deleted /gone/a from a",
      "merged deleted /gone/b from a",
      "merged added /gone/c from b",
      "merged added /link from a",
      "merged added /new.txt from b",
      "merged deleted /old.txt from a",
      "merged modified /src/list.txt from a + b",
      "merged modified /tool.sh from b",
    ]);
    expect({ ...rehearsal, dryRun: false, written: true }).toEqual(report);
    expect(report.conflicts).toEqual([]);
    expect(shape(lower)).toEqual({
      "/empty/": "755",
      "/gone/": "755",
      "/gone/c": "644 c",
      "/link": "-> src/list.txt",
      "/new.txt": "644 new",
      "/src/": "755",
      "/src/list.txt": `644 ${lines(1, "two", 3, 4, 5, 6, 7, 8, "nine", 10)}`,
      "/tool.sh": "755 #!\n",
    });
    expect([left("a"), left("b")]).toEqual([[], []]);
    expect(await merge()).toEqual({ dryRun: false, written: true, changes: [], conflicts: [] });
  });

  test("writes nothing while a conflict is left; each is told with its kind and its sides", async () => {
    const { lower, merge, left } = await arrange(
      { text: TEN, gone: "g", link: "was a file", image: "\0png", "package-lock.json": "{}" },
      {
        async a(at) {
          await writeFile(at("/text"), TEN.replace("5\n", "five\n"));
          await rm(at("/gone"));
          await rm(at("/link"));
          await symlink("x", at("/link"));
          await writeFile(at("/image"), "\0a");
          await writeFile(at("/package-lock.json"), '{ "a": 1 }');
          await writeFile(at("/both"), "a");
          await writeFile(at("/fine"), "fine");
        },
        async b(at) {
          await writeFile(at("/text"), TEN.replace("5\n", "FIVE\n"));
          await writeFile(at("/gone"), "changed");
          await writeFile(at("/link"), "still a file");
          await writeFile(at("/image"), "\0b");
          await writeFile(at("/package-lock.json"), '{ "b": 1 }');
          await writeFile(at("/both"), "b");
        },
      },
    );
    const before = shape(lower);
    const report = await merge();
    expect(conflictsOf(report)).toEqual([
      "added /both: a | b",
      "deleted /gone: a | b",
      "binary /image: a | b",
      "type /link: a | b",
      "whole /package-lock.json: a | b",
      "text /text: a | b",
    ]);
    expect(report.written).toBe(false);
    expect(report.conflicts.at(-1)).toEqual({
      path: "/text",
      kind: "text",
      sides: ["a", "b"],
      settled: undefined,
      base: { type: "file", size: 21, mode: 0o644 },
      ours: { type: "file", size: 24, mode: 0o644 },
      theirs: { type: "file", size: 24, mode: 0o644 },
      hunks: [{ base: { start: 4, count: 1 }, ours: { start: 4, count: 1 }, theirs: { start: 4, count: 1 } }],
    });
    expect(shape(lower)).toEqual(before);
    expect(left("a").length).toBeGreaterThan(5);
    // The one says so for all.
    const settled = await merge({ favour: "ours" });
    expect(new Set(settled.conflicts.map((one) => one.settled))).toEqual(new Set(["ours"]));
    expect(settled.written).toBe(true);
    expect(shape(lower)).toMatchObject({
      "/both": "644 a",
      "/fine": "644 fine",
      "/image": "644 \0a",
      "/link": "-> x",
      "/text": `644 ${TEN.replace("5\n", "five\n")}`,
    });
    expect(shape(lower)["/gone"]).toBeUndefined();
    expect([left("a"), left("b")]).toEqual([[], []]);
  });

  test("a file against a directory is nothing that a strategy decides", async () => {
    const { lower, merge } = await arrange(
      { place: "file" },
      {
        a: async (at) => await writeFile(at("/place"), "still a file"),
        async b(at) {
          await rm(at("/place"));
          mkdirSync(at("/place"));
          await writeFile(at("/place/inside"), "in a directory");
        },
      },
    );
    const report = await merge({ favour: "ours" });
    expect(conflictsOf(report)).toEqual(["deleted /place: a | b (ours)", "directory /place: project | a + b"]);
    expect(report.written).toBe(false);
    expect(shape(lower)).toEqual({ "/place": "644 file" });
  });

  test("lays conflicts of text out with markers that name the sides, and takes a driver for what it is told", async () => {
    const { lower, merge } = await arrange(
      { text: TEN, "CHANGES.md": lines("# Changes"), "a.lock": "1" },
      {
        async a(at) {
          await writeFile(at("/text"), TEN.replace("5\n", "five\n"));
          await writeFile(at("/CHANGES.md"), lines("# Changes", "- by a"));
          await writeFile(at("/a.lock"), "a");
        },
        async b(at) {
          await writeFile(at("/text"), TEN.replace("5\n", "FIVE\n"));
          await writeFile(at("/CHANGES.md"), lines("# Changes", "- by b"));
          await writeFile(at("/a.lock"), "b");
        },
      },
    );
    const report = await merge({
      markers: true,
      drivers: [
        { pattern: "CHANGES.md", driver: "union" },
        { pattern: "*.lock", driver: "theirs" },
      ],
    });
    expect(conflictsOf(report)).toEqual(["text /text: a | b (markers)"]);
    expect(await readFile(join(lower, "text"), "utf8")).toBe(
      TEN.replace("5\n", lines("<<<<<<< a", "five", "=======", "FIVE", ">>>>>>> b")),
    );
    expect(await readFile(join(lower, "CHANGES.md"), "utf8")).toBe(lines("# Changes", "- by a", "- by b"));
    expect(await readFile(join(lower, "a.lock"), "utf8")).toBe("b");
  });

  test("what somebody changed in the directory since is never overwritten unasked", async () => {
    const { lower, merge } = await arrange(
      { "kept.txt": "1\n", "gone.txt": "1\n", "lost.txt": "1\n", "same.txt": "1\n" },
      {
        async a(at) {
          for (const name of ["kept", "lost", "same"]) await writeFile(at(`/${name}.txt`), "by a\n", { flag: "a" });
          await rm(at("/gone.txt"));
        },
      },
    );
    writeFileSync(join(lower, "kept.txt"), "by the user\n");
    writeFileSync(join(lower, "gone.txt"), "by the user\n");
    writeFileSync(join(lower, "same.txt"), "1\nby a\n");
    rmSync(join(lower, "lost.txt"));
    const report = await merge();
    expect(conflictsOf(report)).toEqual([
      "outdated /gone.txt: project | a",
      "outdated /kept.txt: project | a",
      "outdated /lost.txt: project | a",
    ]);
    expect(readFileSync(join(lower, "kept.txt"), "utf8")).toBe("by the user\n");
    await merge({ favour: "theirs" });
    expect(shape(lower)).toEqual({
      "/kept.txt": "644 1\nby a\n",
      "/lost.txt": "644 1\nby a\n",
      "/same.txt": "644 1\nby a\n",
    });
  });

  test("into another directory is three-way with what that has become", async () => {
    const { root, merge, left } = await arrange(
      { "a.txt": TEN },
      { a: async (at) => await writeFile(at("/a.txt"), TEN.replace("2\n", "two\n")) },
    );
    const other = join(root, "other");
    mkdirSync(other);
    writeTree(other, { "a.txt": TEN.replace("9\n", "nine\n"), "b.txt": "b" });
    const report = await merge({ into: other, intoName: "other" });
    expect(changesOf(report)).toEqual(["merged modified /a.txt from a"]);
    expect(shape(other)).toEqual({
      "/a.txt": `644 ${lines(1, "two", 3, 4, 5, 6, 7, 8, "nine", 10)}`,
      "/b.txt": "644 b",
    });
    expect(left("a")).toEqual([]);
  });

  test("BR-02 a delta brings only what its rules let it write, and deletes nothing that it cannot see", async () => {
    const rules: readonly Rule[] = [
      { pattern: "**/*", permission: "write" },
      { pattern: "/dir/secret", permission: "none", priority: 9 },
      { pattern: "/read.txt", permission: "read", priority: 9 },
    ];
    const { lower, merge, root, left } = await arrange(
      { dir: { secret: "s", plain: "p" }, "read.txt": "r", "b.txt": "b" },
      {
        async a(at) {
          await rm(at("/dir"), { recursive: true });
        },
        async b(at) {
          await writeFile(at("/b.txt"), "B");
        },
      },
      { a: rules },
    );
    // As if the rules had been others when it worked.
    writeTree(join(root, "a/tree"), { "read.txt": "written", ".agentfense.yaml": "version: 1" });
    const report = await merge();
    expect(changesOf(report)).toEqual([
      "refused added /.agentfense.yaml from a",
      "merged modified /b.txt from b",
      "merged deleted /dir/plain from a",
      "refused deleted /dir/secret from a",
      "refused modified /read.txt from a",
    ]);
    expect(shape(lower)).toEqual({
      "/b.txt": "644 B",
      "/dir/": "755",
      "/dir/secret": "644 s",
      "/read.txt": "644 r",
    });
    expect(left("a").sort()).toEqual([".agentfense.yaml", ".wh.dir", "read.txt"]);
    expect(left("b")).toEqual([]);
  });

  test("BR-03 names with line feeds, names that are no text, and links that lead in circles are entries like others", async () => {
    const odd = "/a\nb";
    const { lower, merge } = await arrange(
      { loop: { x: "x" } },
      {
        async a(at) {
          await writeFile(at(odd), "odd");
          await writeFile(Buffer.concat([Buffer.from(`${at("/")}`), Buffer.of(0xff)]), "bytes");
          await symlink("round", at("/circle"));
          await symlink("circle", at("/round"));
        },
        async b(at) {
          await rm(at("/loop"), { recursive: true });
          await symlink(".", at("/loop"));
        },
      },
    );
    const report = await merge();
    expect(report.conflicts).toEqual([]);
    expect(shape(lower)).toMatchObject({
      [odd]: "644 odd",
      "/circle": "-> round",
      "/loop": "-> .",
      "/round": "-> circle",
    });
  });
});
