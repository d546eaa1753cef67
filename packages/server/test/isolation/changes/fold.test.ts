import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { foldChanges, type ListSpec, listChanges } from "@agentfense/server/isolation";
import { describe, expect, test } from "vitest";
import type { Tree } from "../../../../../test/support/tree.ts";
import { type Arrangement, arrange } from "./arrangement.ts";

async function ignoredIn({ delta, lower }: Arrangement, more: Partial<ListSpec> = {}) {
  const changes = await Array.fromAsync(listChanges({ delta, lowers: [lower], ignores: true, ...more }));
  return changes.map(({ path, ignoredIn: place }) => [path, place]);
}

async function folded({ delta, lower }: Arrangement) {
  const changes = await Array.fromAsync(listChanges({ delta, lowers: [lower], ignores: true }));
  return foldChanges(changes).map(({ kind, path, folded: counts }) =>
    counts ? { path, ...counts } : `${kind} ${path}`,
  );
}

function files(count: number): Tree {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, "x"]));
}

describe("folded changes", () => {
  test("a changed source comes first, and what is ignored is one line for each directory, with counts", async () => {
    const place = arrange({
      ".gitignore": "node_modules/\n*.log\n.env\n",
      ".env": "1",
      a: { node_modules: files(3) },
      src: { "main.js": "1" },
      z: { "old.log": "1", "new.log": "1" },
    });
    await place.inMount((at) => {
      mkdirSync(at("/node_modules/deep"), { recursive: true });
      for (let index = 0; index < 200; index++) writeFileSync(at(`/node_modules/deep/${index}`), "x");
      rmSync(at("/a/node_modules"), { recursive: true });
      writeFileSync(at("/src/main.js"), "2");
      writeFileSync(at("/README"), "new");
      writeFileSync(at("/.env"), "2");
      writeFileSync(at("/z/new.log"), "2");
      rmSync(at("/z/old.log"));
    });
    const none = { added: 0, modified: 0, deleted: 0, renamed: 0 };
    expect(await folded(place)).toEqual([
      "added /README",
      "modified /src/main.js",
      "modified /.env",
      { path: "/a/node_modules", ...none, deleted: 4 },
      { path: "/node_modules", ...none, added: 202 },
      { path: "/z", ...none, modified: 1, deleted: 1 },
    ]);
  });

  test("what the agent writes into an ignore file hides nothing of its work", async () => {
    const place = arrange({ ".gitignore": "build/\n", src: { a: "1" } });
    await place.inMount((at) => {
      writeFileSync(at("/.gitignore"), "*\n");
      writeFileSync(at("/src/.gitignore"), "*\n");
      writeFileSync(at("/src/a"), "2");
      writeFileSync(at("/new"), "2");
    });
    expect(await ignoredIn(place)).toEqual([
      ["/.gitignore", undefined],
      ["/new", undefined],
      ["/src/.gitignore", undefined],
      ["/src/a", undefined],
    ]);
  });

  test("an ignore file that the rules hide tells nobody but the owner anything", async () => {
    const rules = [
      { pattern: "**/*", permission: "write" },
      { pattern: "/.gitignore", permission: "none", priority: 9 },
    ] as const;
    const place = arrange({ ".gitignore": "secret-*\n" }, { tree: { "secret-a": "x", "secret-b": "x" } });
    expect((await ignoredIn(place, { rules })).map(([, where]) => where)).toEqual([undefined, undefined]);
    expect((await ignoredIn(place, { rules, tellsAll: true })).map(([, where]) => where)).toEqual(["/", "/"]);
  });

  test("is what git ignores, nested files, negations and all", async () => {
    const place = arrange({
      ".gitignore": "*.o\n!keep.o\n/top\n# a comment\n\\#file\nonly/\na/**/z\nsp ace \n{x}\n[ab].c\ndocs/*.md\r\n!\n",
      sub: { ".gitignore": "!lib.o\nlocal\n", x: "1" },
    });
    const paths = [
      "x.o", "keep.o", "top", "d/top", "#file", "# a comment", "only/f", "d/only", "a/z", "a/b/c/z", "a/b/y", "sp ace", "{x}", "x",
      "a.c", "c.c", "docs/a.md", "docs/in/a.md", "sub/lib.o", "sub/other.o", "sub/local", "sub/deep/local", "local", "top2",
    ]; // biome-ignore format: a table
    const tree = join(place.delta, "tree");
    for (const path of paths) {
      mkdirSync(join(tree, path, ".."), { recursive: true });
      writeFileSync(join(tree, path), "x");
    }
    execFileSync("git", ["init", "-q"], { cwd: place.lower });
    const ours = (await ignoredIn(place)).filter(
      ([path, where]) => where !== undefined && paths.includes(path!.slice(1)),
    );
    const asked = execFileSync("git", ["check-ignore", "--no-index", "-z", "--stdin"], {
      cwd: place.lower,
      input: paths.join("\0"),
      encoding: "utf8",
    });
    expect(ours.map(([path]) => path!.slice(1)).sort()).toEqual(asked.split("\0").filter(Boolean).sort());
  });

  test("patterns made to take for ever do not", async () => {
    const stars = `${"a*".repeat(60)}b\n${"**/a*".repeat(60)}b\n`;
    const name = "a".repeat(250);
    const place = arrange({ ".gitignore": stars }, { tree: { [name]: { [name]: { [name]: "x" } } } });
    expect((await ignoredIn(place)).map(([, where]) => where)).toEqual([undefined, undefined, undefined]);
  });
});
