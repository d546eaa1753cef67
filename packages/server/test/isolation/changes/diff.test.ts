import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { diffChanges, encodeText, type FileDiff } from "@agentfense/server/isolation";
import { describe, expect, test } from "vitest";
import { directory, fifo, file, link } from "../../../../../test/support/tree.ts";
import { type Arrangement, arrange, shape } from "./arrangement.ts";

async function diffOf({ delta, lower }: Arrangement, options: { paths?: string[]; maxBytes?: number } = {}) {
  const found: FileDiff[] = [];
  for await (const diff of diffChanges({ delta, lowers: [lower], ...options })) found.push(diff);
  return found;
}

describe("diffChanges", () => {
  test("shows lines, modes, links, additions and deletions in path order", async () => {
    const place = arrange({
      "a.txt": "one\ntwo\n",
      gone: "bye\n",
      link: link("a.txt"),
      src: { run: "x\n", same: "s" },
    });
    await place.inMount((at) => {
      writeFileSync(at("/a.txt"), "one\n2\n");
      rmSync(at("/gone"));
      rmSync(at("/link"));
      symlinkSync("src", at("/link"));
      chmodSync(at("/src/run"), 0o755);
      chmodSync(at("/src/same"), 0o644);
      mkdirSync(at("/new"));
      writeFileSync(at("/new/file"), "fresh");
    });
    const diffs = await diffOf(place);
    expect(diffs.map(({ kind, path, type }) => `${kind} ${type} ${path}`)).toEqual([
      "modified file /a.txt",
      "deleted file /gone",
      "modified symlink /link",
      "added directory /new",
      "added file /new/file",
      "modified file /src/run",
    ]);
    expect(diffs.map(({ text }) => text).join("")).toBe(
      [
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n",
        "diff --git a/link b/link\n--- a/link\n+++ b/link\n@@ -1 +1 @@\n-a.txt\n\\ No newline at end of file\n+src\n\\ No newline at end of file\n",
        "Directory b/new added, mode 755\n",
        "diff --git a/new/file b/new/file\nnew file mode 100644\n--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+fresh\n\\ No newline at end of file\n",
        "diff --git a/src/run b/src/run\nold mode 100644\nnew mode 100755\n",
      ].join(""),
    );
  });

  test("binary files and files beyond the limit are named, not shown; a change of mode is not a change of content", async () => {
    const bytes = (fill: number): Buffer => Buffer.alloc(5000, fill);
    const place = arrange({ binary: bytes(0), large: "x".repeat(5000), mode: bytes(0), sparse: "" });
    await place.inMount((at) => {
      writeFileSync(at("/binary"), bytes(1));
      writeFileSync(at("/large"), "y".repeat(5000));
      chmodSync(at("/mode"), 0o600);
      truncateSync(at("/sparse"), 2 ** 40);
    });
    const diffs = await diffOf(place, { maxBytes: 5000 });
    expect(diffs.map(({ path, shows }) => [path, shows])).toEqual([
      ["/binary", "binary"],
      ["/large", "lines"],
      ["/mode", "nothing"],
      ["/sparse", "too-large"],
    ]);
    expect(diffs[0]!.text).toContain("Binary files a/binary and b/binary differ\n");
    expect(diffs[3]!.text).toContain("Files a/sparse and b/sparse differ: too large to show\n");
  });

  test("every file of a deleted directory is shown, but nothing that the sandbox never saw", async () => {
    const rules = [
      { pattern: "**/*", permission: "write" },
      { pattern: "**/.env", permission: "none", priority: 100 },
    ] as const;
    const place = arrange({ old: { ".env": "TOKEN=1", a: "1", b: "2" } }, { rules });
    await place.inMount((at) => rmSync(at("/old"), { recursive: true }));
    const removed = (name: string, line: string) =>
      `diff --git a/old/${name} b/old/${name}\ndeleted file mode 100644\n--- a/old/${name}\n+++ /dev/null\n@@ -1 +0,0 @@\n-${line}\n\\ No newline at end of file\n`;
    const shown = ["Directory a/old deleted\n", removed("a", "1"), removed("b", "2")];
    const { delta, lower } = place;
    for (const tellsAll of [true, false]) {
      const diffs = await Array.fromAsync(diffChanges({ delta, lowers: [lower], rules, tellsAll }));
      expect(diffs.map(({ text }) => text)).toEqual(shown);
    }
  });

  test("marks what the host may run unasked, and links that lead out", async () => {
    const place = arrange(
      { a: "" },
      {
        tree: {
          ".agentfense.yaml": "version: 1\n",
          ".github": { workflows: { "ci.yml": "" } },
          ".vscode": { "tasks.json": "" },
          Makefile: "",
          deep: {
            ".agentfense.yaml": "version: 1\n",
            ".git": { hooks: { "pre-commit": "" } },
            in: link("../a"),
            out: link("../../a"),
          },
          "main.c": "",
          "package.json": "{}",
          passwd: link("/etc/passwd"),
        },
      },
    );
    const diffs = (await diffOf(place)).filter(({ type }) => type !== "directory");
    expect(diffs.filter(({ sensitive }) => sensitive).map(({ path }) => path)).toEqual([
      "/.agentfense.yaml",
      "/.github/workflows/ci.yml",
      "/.vscode/tasks.json",
      "/Makefile",
      "/deep/.agentfense.yaml",
      "/deep/.git/hooks/pre-commit",
      "/deep/out",
      "/package.json",
      "/passwd",
    ]);
  });

  test("with paths, only those and what is below; a path without a change is an error", async () => {
    const place = arrange({ src: { a: "1", b: "1" }, other: "1", same: "1" });
    await place.inMount((at) => {
      for (const path of ["/src/a", "/src/b", "/other"]) writeFileSync(at(path), "2");
      chmodSync(at("/same"), 0o644);
    });
    expect((await diffOf(place, { paths: ["src"] })).map(({ path }) => path)).toEqual(["/src/a", "/src/b"]);
    expect((await diffOf(place, { paths: ["/other", "src//./b"] })).map(({ path }) => path)).toEqual([
      "/other",
      "/src/b",
    ]);
    await expect(diffOf(place, { paths: ["/src/a", "/same", "/nowhere"] })).rejects.toMatchObject({
      code: "NO_CHANGE",
      message: "the delta changes nothing at /same, /nowhere",
    });
    await expect(diffOf(place, { paths: ["../x"] })).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(diffOf(place, { paths: ["x\0y"] })).rejects.toMatchObject({ code: "INVALID_PATH" });
  });

  test("a hostile delta shows nothing outside of the codebase and hangs nowhere", async () => {
    const secret = "host secret";
    const place = arrange({ sub: { x: "x" } }, { tree: {} });
    writeFileSync(join(place.root, "secret"), secret);
    const tree = join(place.delta, "tree");
    writeFileSync(join(tree, ".wh.."), "");
    writeFileSync(join(tree, ".wh..."), "");
    writeFileSync(join(tree, ".wh..wh.long.00"), "../secret");
    symlinkSync("../secret", join(tree, "link"));
    symlinkSync(place.root, join(tree, "sub"));
    execFileSync("mkfifo", [join(tree, "pipe")]);
    const text = (await diffOf(place)).map((diff) => diff.text).join("");
    expect(text).not.toContain(secret);
    expect(text).toBe(
      "diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+../secret\n\\ No newline at end of file\n" +
        "Special file b/pipe added, mode 644\n" +
        `diff --git a/sub b/sub\nnew file mode 120000\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+${place.root}\n\\ No newline at end of file\n` +
        "Directory a/sub modified: now a symlink\n" +
        "diff --git a/sub/x b/sub/x\ndeleted file mode 100644\n--- a/sub/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n",
    );
  });

  test("git apply makes of the codebase what the mount showed", async () => {
    const place = arrange({
      "a b": "1\n2\n3\n",
      'q"uo\\te': "x\n",
      "l\udcff": "bytes",
      gone: "1\n",
      swap: "file\n",
      back: link("gone"),
      d: { e: "no line feed" },
    });
    let seen = {};
    await place.inMount((at) => {
      writeFileSync(at("/a b"), "1\ntwo\n3\n");
      writeFileSync(at('/q"uo\\te'), "y\n");
      writeFileSync(Buffer.concat([Buffer.from(at("/l")), Buffer.of(0xff)]), Buffer.from([0x61, 0xfe, 0x0a]));
      rmSync(at("/gone"));
      for (const name of ["/swap", "/back"]) rmSync(at(name));
      symlinkSync("a b", at("/swap"));
      writeFileSync(at("/back"), "now a file\n", { mode: 0o755 });
      writeFileSync(at("/tab\tand\nline"), "z");
      renameSync(at("/d/e"), at("/d/f"));
      seen = shape(at(""));
    });
    const patch = Buffer.concat((await diffOf(place)).map(({ text }) => encodeText(text)));
    execFileSync("git", ["apply", "--whitespace=nowarn", "-"], { cwd: place.lower, input: patch, stdio: "pipe" });
    expect(shape(place.lower)).toEqual(seen);
  });

  test("needs a delta and codebases", async () => {
    const place = arrange({});
    await expect(diffOf(place)).rejects.toMatchObject({ code: "NOT_A_DELTA" });
    mkdirSync(join(place.delta, "tree"));
    await expect(diffOf({ ...place, lower: join(place.root, "none") })).rejects.toMatchObject({
      code: "CODEBASE_UNUSABLE",
    });
    expect(await diffOf(place)).toEqual([]);
  });

  test("directories and special files are told in a sentence", async () => {
    const place = arrange(
      { d: directory({}, { mode: 0o755 }), f: "", g: "" },
      { tree: { d: directory({}, { mode: 0o700 }), f: {}, g: fifo(), n: file({ mode: 0o600 }) } },
    );
    expect((await diffOf(place)).map(({ text }) => text)).toEqual([
      "Directory b/d modified: mode 755 is now 700\n",
      "diff --git a/f b/f\ndeleted file mode 100644\nFile a/f modified: now a directory\n",
      "diff --git a/g b/g\ndeleted file mode 100644\nFile a/g modified: now a special file\n",
      "diff --git a/n b/n\nnew file mode 100600\n",
    ]);
  });
});
