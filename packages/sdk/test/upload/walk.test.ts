import { execFileSync, spawnSync } from "node:child_process";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeTree } from "../../../../test/support/upload-tree.ts";
import { walk } from "../../src/upload/walk.ts";

const USUAL = { ignoreFiles: true, includeGit: false } as const;

async function pathsOf(top: string, options = USUAL): Promise<string[]> {
  return (await walk(top, options)).entries.map(({ kind, path }) => (kind === "directory" ? `${path}/` : path));
}

describe("what a walk finds", () => {
  test("files with their modes, empty directories, and links as links", async () => {
    const top = await makeTree({
      "src/a.sh": "echo",
      "empty/": "",
      link: "-> src",
      broken: "-> nowhere",
      up: "-> /etc",
    });
    await chmod(join(top, "src/a.sh"), 0o755);
    expect((await walk(top, USUAL)).entries).toEqual([
      { kind: "symlink", path: "broken", target: "nowhere" },
      { kind: "directory", path: "empty", mode: 0o755 },
      { kind: "symlink", path: "link", target: "src" },
      { kind: "directory", path: "src", mode: 0o755 },
      { kind: "file", path: "src/a.sh", mode: 0o755, size: 4 },
      { kind: "symlink", path: "up", target: "/etc" },
    ]);
  });

  test("a socket is left out and named", async () => {
    const top = await makeTree({ a: "1" });
    const server = createServer().listen(join(top, "socket"));
    onTestFinished(() => void server.close());
    const { entries, unsuitable } = await walk(top, USUAL);
    expect({ paths: entries.map(({ path }) => path), unsuitable }).toEqual({
      paths: ["a"],
      unsuitable: ["socket: is neither a file, a directory nor a link"],
    });
  });

  test("a name that is not UTF-8 is left out and named", async () => {
    const top = await makeTree({ a: "1" });
    await writeFile(Buffer.concat([Buffer.from(`${top}/bad`), Buffer.from([0xff])]), "");
    const { entries, unsuitable } = await walk(top, USUAL);
    expect(entries.map(({ path }) => path)).toEqual(["a"]);
    expect(unsuitable).toEqual(["bad\ufffd: its name is not UTF-8"]);
  });
});

describe("what is ignored", () => {
  test(".git is left out, at any depth, unless asked for", async () => {
    const top = await makeTree({ ".git/config": "x", "sub/.git": "gitdir: y", "sub/a": "1", ".github/b": "2" });
    expect(await pathsOf(top)).toEqual([".github/", ".github/b", "sub/", "sub/a"]);
    expect(await pathsOf(top, { ...USUAL, includeGit: true } as never)).toContain(".git/config");
  });

  test("a nested file has the last word over one above it", async () => {
    const top = await makeTree({
      ".gitignore": "*.log\n/build/\n",
      "a.log": "",
      "build/x": "",
      "sub/.gitignore": "!keep.log\n",
      "sub/keep.log": "",
      "sub/other.log": "",
      "sub/build/x": "",
    });
    expect(await pathsOf(top)).toEqual([
      ".gitignore",
      "sub/",
      "sub/.gitignore",
      "sub/build/",
      "sub/build/x",
      "sub/keep.log",
    ]);
  });

  test("nothing comes back from a directory that is ignored", async () => {
    const top = await makeTree({ ".gitignore": "out/\n!out/keep\n", "out/keep": "", "out/.gitignore": "!*\n" });
    expect(await pathsOf(top)).toEqual([".gitignore"]);
  });

  test(".agentfenseignore wins over .gitignore beside it", async () => {
    const top = await makeTree({
      ".gitignore": "dist/\n",
      ".agentfenseignore": "!dist/\nsecret.txt\n",
      "dist/app.js": "",
      "secret.txt": "",
    });
    expect(await pathsOf(top)).toEqual([".agentfenseignore", ".gitignore", "dist/", "dist/app.js"]);
  });

  test("case matters, and a link is not a directory", async () => {
    const top = await makeTree({ ".gitignore": "README\nlib/\n", readme: "", README: "", lib: "-> elsewhere" });
    expect(await pathsOf(top)).toEqual([".gitignore", "lib", "readme"]);
  });

  test("an ignore file that is a link or a directory says nothing", async () => {
    const top = await makeTree({ rules: "*\n", ".gitignore": "-> rules", ".agentfenseignore/": "", a: "" });
    expect(await pathsOf(top)).toEqual([".agentfenseignore/", ".gitignore", "a", "rules"]);
  });

  test("patterns of somebody's own have the last word, at any depth", async () => {
    const top = await makeTree({
      ".gitignore": "*.log\n",
      "a.log": "",
      "sub/.gitignore": "!secret\n",
      "sub/secret": "",
      "sub/b": "",
      "node_modules/x": "",
    });
    const { entries } = await walk(top, { ...USUAL, ignore: ["secret", "node_modules/", "!a.log"] });
    expect(entries.map(({ path }) => path)).toEqual([".gitignore", "a.log", "sub", "sub/.gitignore", "sub/b"]);
  });

  test("without the ignore files it takes everything", async () => {
    const top = await makeTree({ ".gitignore": "*\n", a: "" });
    expect(await pathsOf(top, { ...USUAL, ignoreFiles: false } as never)).toEqual([".gitignore", "a"]);
  });
});

const gitIsThere = spawnSync("git", ["--version"]).status === 0;
const sameAsGit = `the files that git would add are the files of the walk${gitIsThere ? "" : " (skipped: there is no git here)"}`;

test.skipIf(!gitIsThere)(sameAsGit, async () => {
  const pattern = fc.constantFrom(
    "*.o",
    "/a",
    "a/",
    "b",
    "!b",
    "!a/b.o",
    "c/*",
    "!c/d",
    "**/d",
    "a/**/b",
    "# x",
    "",
    "?",
  );
  const file = fc.array(pattern, { maxLength: 4 }).map((lines) => `${lines.join("\n")}\n`);
  const files = ["a/b", "a/b.o", "a/c/b", "b", "b.o", "c/d", "c/e", "d/a/x.o", "d/d/d", "x"];
  await fc.assert(
    fc.asyncProperty(file, file, async (rootRules, nestedRules) => {
      const top = await makeTree({ ".gitignore": rootRules, "a/.gitignore": nestedRules });
      for (const path of files) {
        await mkdir(join(top, path, ".."), { recursive: true });
        await writeFile(join(top, path), path);
      }
      execFileSync("git", ["init", "-q", top], { stdio: "ignore" });
      const git = execFileSync("git", ["-C", top, "ls-files", "-z", "--others", "--exclude-standard"], {
        encoding: "utf8",
        env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" },
      });
      const walked = (await walk(top, USUAL)).entries.flatMap(({ kind, path }) => (kind === "directory" ? [] : [path]));
      expect(walked.sort()).toEqual(git.split("\0").filter(Boolean).sort());
    }),
    { numRuns: 60 },
  );
});
