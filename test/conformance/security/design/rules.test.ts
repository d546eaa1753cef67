import { compileRules, extendPreset, getPreset, lint, type Rule, registerPreset } from "@agentfense/permission";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { O } from "../../../support/constants.ts";
import { withoutHanging } from "../../../support/eventually.ts";
import { file, type Tree } from "../../../support/tree.ts";
import { usesOf } from "../attacks.ts";
import { expectOnly, outcomesOf, outcomesOfTwins } from "../outcomes.ts";

/** A codebase in which every path is a question to the rules. */
const TREE: Tree = {
  "a.txt": "a",
  "b.md": "b",
  ".dot": "dot",
  "Upper.txt": "upper",
  dir: { "a.txt": "a", "b.md": "b", sub: { "a.txt": "a", deep: { "a.txt": "a", "x1.log": "x", "xy.log": "x" } } },
  name: { "inside.txt": "inside" },
  other: { name: "a file called name", secrets: { "key.txt": "key" } },
};

describeAttack("the rules, seen through a mount", (arena) => {
  /** The sorted paths of all visible files, and of the directories that show nothing. */
  const visible = async (rules: readonly Rule[], lower: Tree = TREE): Promise<string[]> => {
    const workspace = await arena.open({ lower, rules });
    const found = await arena.probe.call(
      "run",
      "find",
      [".", "-mindepth", "1", "(", "-type", "f", "-o", "-empty", ")"],
      {
        cwd: workspace.mountPoint,
      },
    );
    return (found.stdout ?? "")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.slice(1))
      .sort();
  };

  const read = (...patterns: string[]): Rule[] => patterns.map((pattern) => ({ pattern, permission: "read" }));

  test("P-01 the path of an entry decides, for creating, deleting and renaming too", async () => {
    const { probe } = arena;
    const workspace = await arena.open({
      lower: { ro: { "free.txt": "free", "fixed.txt": "fixed" } },
      rules: [
        { pattern: "/ro/**", permission: "read" },
        { pattern: "/ro/free*", permission: "write", priority: 1 },
      ],
    });
    const outcomes = await outcomesOf(probe, workspace, [
      ["writeFile", workspace.at("/ro/free-new"), "new"],
      ["renameat2", workspace.at("/ro/free-new"), workspace.at("/ro/free-moved")],
      ["unlinkat", workspace.at("/ro/free.txt")],
      ["writeFile", workspace.at("/ro/other"), "new"],
      ["renameat2", workspace.at("/ro/free-moved"), workspace.at("/ro/other")],
      ["unlinkat", workspace.at("/ro/fixed.txt")],
    ]);
    expect(Object.values(outcomes)).toEqual(["OK", "OK", "OK", "EACCES", "EACCES", "EACCES"]);
    expect(await probe.names(workspace.at("/ro"))).toEqual(["fixed.txt", "free-moved"]);
  });

  test("P-02 an explicit type is obeyed", async () => {
    expect(await visible([{ pattern: "/dir/sub", permission: "read", type: "directory" }])).toEqual([
      "/dir/sub/a.txt",
      "/dir/sub/deep/a.txt",
      "/dir/sub/deep/x1.log",
      "/dir/sub/deep/xy.log",
    ]);
    expect(await visible([{ pattern: "/dir/a.txt", permission: "read", type: "file" }])).toEqual(["/dir/a.txt"]);
  });

  test("P-03 without a type, a final slash means a directory, a plain path one file, anything else a glob", async () => {
    for (const type of [undefined, "glob"] as const) {
      const typed = (pattern: string): Rule => ({
        pattern,
        permission: "read",
        ...(type === undefined ? {} : { type }),
      });
      expect(await visible([typed("/dir/sub/deep/")])).toHaveLength(3);
      expect(await visible([typed("/dir/b.md")])).toEqual(["/dir/b.md"]);
      expect(await visible([typed("/dir/*.md")])).toEqual(["/dir/b.md"]);
    }
  });

  test("P-04 a star stays in one segment, two stars span many, classes and braces choose", async () => {
    expect(await visible(read("/dir/*/a.txt"))).toEqual(["/dir/sub/a.txt"]);
    expect(await visible(read("/dir/**/a.txt"))).toEqual(["/dir/a.txt", "/dir/sub/a.txt", "/dir/sub/deep/a.txt"]);
    expect(await visible(read("**/sub/**/*.log"))).toEqual(["/dir/sub/deep/x1.log", "/dir/sub/deep/xy.log"]);
    expect(await visible(read("**/x[0-9].log"))).toEqual(["/dir/sub/deep/x1.log"]);
    expect(await visible(read("**/x?.log"))).toEqual(["/dir/sub/deep/x1.log", "/dir/sub/deep/xy.log"]);
    expect(await visible(read("/{a.txt,b.md}"))).toEqual(["/a.txt", "/b.md"]);
  });

  test("P-05 a directory followed by two stars covers the directory itself", async () => {
    const rules: Rule[] = [...read("/**"), { pattern: "/dir/**", permission: "none", priority: 1 }];
    const paths = await visible(rules);
    expect(paths.filter((path) => path.startsWith("/dir"))).toEqual([]);
    expect(compileRules(rules).decide("/dir").level).toBe(0);
  });

  test("P-06 a pattern without a slash matches at any depth, one with a slash at the root", async () => {
    expect(await visible(read("a.txt"))).toEqual(["/a.txt", "/dir/a.txt", "/dir/sub/a.txt", "/dir/sub/deep/a.txt"]);
    expect(await visible(read("/a.txt"))).toEqual(["/a.txt"]);
    expect(await visible(read("dir/*.txt"))).toEqual(["/dir/a.txt"]);
  });

  test("P-07 names with a dot are not special, and case matters", async () => {
    expect(await visible(read("/*"))).toEqual(["/.dot", "/Upper.txt", "/a.txt", "/b.md", "/dir", "/name", "/other"]);
    expect(await visible(read("upper.txt"))).toEqual([]);
  });

  test("P-08 priority decides first, then the type, then how specific the pattern is", async () => {
    const base = read("/**");
    const hide = (pattern: string, more: Partial<Rule> = {}): Rule => ({ pattern, permission: "none", ...more });
    expect(await visible([...base, hide("/a.txt", { priority: -1 })])).toContain("/a.txt");
    expect(await visible([...base, hide("/a.txt")])).not.toContain("/a.txt");
    expect(await visible([hide("/dir/**"), ...read("/dir/sub/a.txt")])).toEqual(["/dir/sub/a.txt"]);
    expect(await visible([...base, hide("**/*.txt"), ...read("/dir/*.txt")])).toContain("/dir/a.txt");
  });

  test("P-09 the same pattern again replaces the earlier rule", async () => {
    expect(await visible([...read("/a.txt"), { pattern: "/a.txt", permission: "none" }])).toEqual([]);
    expect(await visible([{ pattern: "/a.txt", permission: "none" }, ...read("/a.txt")])).toEqual(["/a.txt"]);
  });

  test("P-10 in any other tie the stricter rule wins, and lint says so", async () => {
    const tied: Rule[] = [
      { pattern: "/dir/?.txt", permission: "read" },
      { pattern: "/dir/a.*", permission: "none" },
    ];
    for (const rules of [tied, tied.toReversed()]) {
      const { level } = compileRules(rules).decide("/dir/a.txt");
      expect((await visible(rules)).includes("/dir/a.txt")).toBe(level > 0);
    }
    const equal: Rule[] = [
      { pattern: "/dir/a.*", permission: "read" },
      { pattern: "/dir/*.t", permission: "none" },
      { pattern: "/dir/?.t", permission: "none" },
    ];
    const tree = [{ path: "/dir/a.t", type: "file" }] as const;
    const findings = [...lint(equal, tree)];
    expect(compileRules(equal).decide("/dir/a.t").level).toBe(0);
    expect(findings.some((finding) => finding.kind === "tie")).toBe(true);
  });

  test("P-11 what no rule matches is hidden, and without rules everything is", async () => {
    expect(await visible([])).toEqual([]);
    const workspace = await arena.open({ lower: TREE, rules: [] });
    expect(await arena.probe.errnoOf("fstatat", workspace.mountPoint)).toBe("OK");
    expect(await arena.probe.errnoOf("fstatat", workspace.at("/a.txt"))).toBe("ENOENT");
    expect(await arena.probe.errnoOf("mkdirat", workspace.at("/new"))).toBe("EACCES");
  });

  test("P-12 a malformed rule is refused with its index and the reason", async () => {
    const malformed: Rule[] = [
      { pattern: "", permission: "read" },
      { pattern: "/a/../b", permission: "read" },
      { pattern: "/[unclosed", permission: "read" },
      { pattern: "/a", permission: "everything" as "read" },
    ];
    for (const rule of malformed) {
      const opening = arena.open({ lower: TREE, rules: [...read("/**"), rule] });
      await expect(opening, JSON.stringify(rule)).rejects.toMatchObject({ index: 1, reason: expect.any(String) });
    }
  });

  test("P-13 deciding takes time in proportion to the path, whatever the pattern", async () => {
    const policy = compileRules([
      { pattern: `/**/${"*a".repeat(40)}*b`, permission: "read" },
      { pattern: `${"**/".repeat(30)}end`, permission: "none" },
    ]);
    const path = `/${"a".repeat(240)}`.repeat(4);
    await withoutHanging(() => {
      for (let count = 0; count < 20; count++) expect(policy.decide(path).level).toBe(0);
    });
  });

  test("P-14 a hidden directory hides all below it, except what a stronger rule shows", async () => {
    const rules: Rule[] = [
      { pattern: "**/secrets*", permission: "none" },
      { pattern: "**/*", permission: "read" },
    ];
    expect(await visible(rules)).not.toContain("/other/secrets/key.txt");
    expect(await visible([...rules, { pattern: "**/key.txt", permission: "read", priority: 1 }])).toContain(
      "/other/secrets/key.txt",
    );
  });

  test("P-16 a hidden directory without anything visible in it does not exist", async () => {
    const { probe } = arena;
    const workspace = await arena.open({
      lower: { empty: {}, box: { "x.md": "x" }, "a.txt": "a" },
      rules: read("**/*.txt"),
    });
    expect(await probe.names(workspace.mountPoint)).toEqual(["a.txt"]);
    for (const path of ["/empty", "/box", "/absent"]) {
      expect(await probe.errnoOf("fstatat", workspace.at(path)), path).toBe("ENOENT");
      expect(await probe.errnoOf("mkdirat", workspace.at(path)), path).toBe("EACCES");
      expect(await probe.errnoOf("mkdirat", workspace.at(`${path}/x.md`)), path).toBe("ENOENT");
    }
  });

  test("P-16 whether a directory with hidden entries only is there cannot be told", async () => {
    const rules: Rule[] = [
      ...read("/**"),
      { pattern: "/vault/**", permission: "none", priority: 1 },
      { pattern: "/vault/out.txt", permission: "write", priority: 2 },
      { pattern: "/vault/*/deep/shown.txt", permission: "read", priority: 2 },
    ];
    const hidden = { "key.pem": "key", box: { deep: { "other.txt": "other" } } };
    const twins = {
      there: await arena.open({ lower: { vault: hidden, "a.txt": "a" }, rules }),
      absent: await arena.open({ lower: { "a.txt": "a" }, rules }),
    };
    const paths = [
      "/vault",
      "/vault/",
      "/vault/key.pem",
      "/vault/box",
      "/vault/box/deep",
      "/vault/out.txt",
      "/vault/new/x",
    ];
    const outcomes = await outcomesOfTwins(arena.probe, twins, (twin) => [
      ...paths.flatMap((path) => usesOf(twin.at(path))),
      ["writeFile", twin.at("/vault/out.txt"), "out"],
      ["mkdirat", twin.at("/vault/box")],
      ["symlinkat", "x", twin.at("/vault/out.txt")],
    ]);
    expectOnly(outcomes, "ENOENT");
    expectOnly(
      await outcomesOfTwins(arena.probe, twins, (twin) => [
        ["mkdirat", twin.at("/vault")],
        ["symlinkat", "x", twin.at("/vault")],
      ]),
      "EACCES",
    );
    for (const twin of Object.values(twins)) expect(await arena.probe.names(twin.mountPoint)).toEqual(["a.txt"]);
  });

  test("P-15 directories are passages exactly where a pattern finds something visible below", async () => {
    const lower: Tree = {
      keys: {
        alice: { "id.pub": "alice", id: "private" },
        bob: { id: "private", old: { archive: { "id.pub": "bob" } } },
        carol: { id: "private", empty: { er: {} } },
      },
    };
    const rules: Rule[] = [
      { pattern: "/keys/**", permission: "none" },
      { pattern: "**/*.pub", permission: "read", priority: 1 },
    ];
    expect(await visible(rules, lower)).toEqual(["/keys/alice/id.pub", "/keys/bob/old/archive/id.pub"]);
    const workspace = await arena.open({ lower, rules });
    expect(await arena.probe.errnoOf("fstatat", workspace.at("/keys/carol"))).toBe("ENOENT");
    const changes = await outcomesOf(arena.probe, workspace, [
      ["fchmodat", workspace.at("/keys"), 0o777],
      ["utimensat", workspace.at("/keys/alice"), "now"],
      ["rmdir", workspace.at("/keys/bob/old/archive")],
      ["mkdirat", workspace.at("/keys/dave")],
      ["renameat2", workspace.at("/keys/alice/id.pub"), workspace.at("/keys/alice/other.pub")],
      ["setxattr", workspace.at("/keys/alice"), "user.note", "x"],
    ]);
    expectOnly(changes, "EACCES");
  });

  test("P-15 directories on the way to something visible can be entered and list only that", async () => {
    const { probe } = arena;
    const workspace = await arena.open({ lower: TREE, rules: read("/dir/sub/deep/a.txt") });
    const names = ["", "/dir", "/dir/sub", "/dir/sub/deep"].map((path) => probe.names(workspace.at(path)));
    expect(await Promise.all(names)).toEqual([["dir"], ["sub"], ["deep"], ["a.txt"]]);
    expect(await probe.errnoOf("tryChdir", workspace.at("/dir/sub"))).toBe("OK");
    expect(await probe.text(workspace.at("/dir/sub/deep/a.txt"))).toBe("a");
    const { stat } = await probe.call("fstatat", workspace.at("/dir/sub"));
    expect((stat?.mode ?? 0) & 0o777).toBe(0o555);
  });

  test("P-28 passages appear and vanish with the rules", async () => {
    const { probe } = arena;
    const lower: Tree = { box: { a: { "one.txt": "one" }, b: { "two.txt": "two" } }, "top.txt": "top" };
    const workspace = await arena.open({ lower, rules: read("/box/a/one.txt") });
    const seen = async () => {
      const found = await probe.call("run", "find", [".", "-mindepth", "1"], { cwd: workspace.mountPoint });
      return (found.stdout ?? "")
        .split("\n")
        .filter((line) => line !== "")
        .sort();
    };
    const one = ["./box", "./box/a", "./box/a/one.txt"];
    expect(await seen()).toEqual(one);
    const steps: [Rule[], string[]][] = [
      [read("/box/b/two.txt"), ["./box", "./box/b", "./box/b/two.txt"]],
      [read("/box/b/three.txt", "/top.txt"), ["./top.txt"]],
      [read("/box/a/one.txt"), one],
      [read("/box/c/**"), []],
      [read("**/one.txt"), one],
    ];
    for (const [rules, expected] of steps) {
      await workspace.updateRules(rules);
      expect(await seen(), JSON.stringify(rules)).toEqual(expected);
      expect(await probe.errnoOf("fstatat", workspace.at("/box"))).toBe(expected.includes("./box") ? "OK" : "ENOENT");
    }
  });

  test("P-15 a passage is listed as long as something shows below it, whatever goes away around it", async () => {
    const { probe } = arena;
    const rules: Rule[] = [
      { pattern: "**/*", permission: "write" },
      { pattern: "/box", permission: "none", type: "file", priority: 1 },
      { pattern: "**/[ab]", permission: "write", priority: 2 },
    ];
    const workspace = await arena.open({ lower: { "1": "one", box: { deep: { a: "two" } } }, rules });
    const listed = async (path: string) => (await probe.call("run", "ls", ["-A", workspace.at(path)])).stdout;
    expect(await listed("/")).toBe("1\nbox\n");
    // What is in the place of something else takes that away from a passage, and its own name from in front of it.
    await probe.call("run", "mv", ["-T", workspace.at("/1"), workspace.at("/box/deep/a")]);
    expect(await listed("/")).toBe("box\n");
    await probe.call("run", "rm", [workspace.at("/box/deep/a")]);
    expect(await listed("/")).toBe("");
  });

  test("P-15 a passage has attributes of its own, whatever lies below it", async () => {
    const { probe } = arena;
    const deep = { a: { b: { "shown.txt": file({ content: "x".repeat(5000), mode: 0o600, mtime: 1_111_111_111 }) } } };
    const workspace = await arena.open({ lower: { deep, plain: {} }, rules: read("/deep/a/b/shown.txt", "/plain") });
    const attributes = async (path: string) => {
      const { stat } = await probe.call("fstatat", workspace.at(path));
      return stat && [stat.mode.toString(8), stat.size, stat.nlink, stat.blocks];
    };
    const plain = await attributes("/plain");
    for (const path of ["/deep", "/deep/a", "/deep/a/b"]) expect(await attributes(path), path).toEqual(plain);
    const listed = (await probe.call("list", workspace.at("/deep"))).entries ?? [];
    expect(listed.find(({ name }) => name === "a")?.type).toBe("directory");
  });

  test("P-17 in such a directory only a path whose own level is write can be made", async () => {
    const { probe } = arena;
    const rules: Rule[] = [...read("/dir/a.txt"), { pattern: "/dir/output/**", permission: "write" }];
    const workspace = await arena.open({ lower: TREE, rules });
    expect(await probe.names(workspace.at("/dir"))).toEqual(["a.txt"]);
    const errnos = await probe.errnos([
      ["mkdirat", workspace.at("/dir/new")],
      ["writeFile", workspace.at("/dir/b.md"), "planted"],
      ["mkdirat", workspace.at("/dir/output")],
      ["writeFile", workspace.at("/dir/output/result"), "result"],
      ["tryOpen", workspace.at("/dir/output/result"), O.RDWR],
    ]);
    expect(errnos).toEqual(["EACCES", "EACCES", "OK", "OK", "OK"]);
    expect(await probe.names(workspace.at("/dir"))).toEqual(["a.txt", "output"]);
  });

  test("P-31 explain names the rule that decides and those that lost", () => {
    const rules: Rule[] = [
      ...read("**/*"),
      { pattern: "/dir/**", permission: "write" },
      { pattern: "/dir/a.txt", permission: "none" },
    ];
    const explanation = compileRules(rules).explain("/dir/a.txt");
    const text = JSON.stringify(explanation);
    expect(explanation).toMatchObject({ level: "none" });
    for (const { pattern } of rules) expect(text).toContain(JSON.stringify(pattern).slice(1, -1));
  });

  test("P-32 lint reports rules that match nothing and secrets that stay visible", () => {
    const tree = [
      { path: "/.env", type: "file" },
      { path: "/src", type: "directory" },
      { path: "/src/a.ts", type: "file" },
    ] as const;
    const findings = [...lint([...read("**/*"), { pattern: "/secretz/**", permission: "none" }], tree)];
    expect(findings.map((finding) => finding.kind)).toEqual(
      expect.arrayContaining(["matches-nothing", "secret-visible"]),
    );
  });

  test("P-33 the presets give the levels their names promise", async () => {
    const { probe } = arena;
    const lower: Tree = { "app.ts": "app", ".env": "secret", output: {}, ".git": { config: "token" } };
    const answers: Record<string, string[]> = {};
    for (const preset of ["agent-safe", "read-only", "full-access", "development", "view-only"]) {
      const workspace = await arena.open({ lower, rules: getPreset(preset) });
      answers[preset] = await probe
        .errnos([
          ["readFile", workspace.at("/app.ts")],
          ["tryOpen", workspace.at("/app.ts"), O.RDWR],
          ["fstatat", workspace.at("/.env")],
          ["fstatat", workspace.at("/.git/config")],
          ["mkdirat", workspace.at("/output/new")],
        ])
        .then((errnos) => errnos);
    }
    expect(answers).toEqual({
      "agent-safe": ["OK", "EACCES", "ENOENT", "ENOENT", "OK"],
      "read-only": ["OK", "EACCES", "OK", "OK", "EACCES"],
      "full-access": ["OK", "OK", "OK", "OK", "OK"],
      development: ["OK", "OK", "ENOENT", "ENOENT", "OK"],
      "view-only": ["EACCES", "EACCES", "OK", "OK", "EACCES"],
    });
  });

  test("P-34 overrides of an extended preset win over everything in it, and a preset can be registered", async () => {
    const { probe } = arena;
    const rules = extendPreset({
      base: "agent-safe",
      additions: [{ pattern: "/src/**", permission: "write" }],
      overrides: [{ pattern: "/.env.example", permission: "read" }],
    });
    const name = `with-example-${arena.agent}-${process.pid}`;
    registerPreset(name, rules);
    const workspace = await arena.open({
      lower: { ".env": "secret", ".env.example": "example", src: {} },
      rules: getPreset(name),
    });
    expect(await probe.names(workspace.mountPoint)).toEqual([".env.example", "src"]);
    expect(await probe.text(workspace.at("/.env.example"))).toBe("example");
    expect(await probe.errnoOf("writeFile", workspace.at("/src/new.ts"), "new")).toBe("OK");
  });
});
