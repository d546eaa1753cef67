import { describe, expect, test } from "vitest";
import { getPreset, lint, type Rule, RuleError, type TreeEntry } from "../src/index.ts";

const TREE: TreeEntry[] = [
  { path: "/src", type: "directory" },
  { path: "/src/main.ts", type: "file" },
  { path: "/secrets", type: "directory" },
  { path: "/secrets/token", type: "file" },
  { path: "/.env.local", type: "file" },
  { path: "/.git", type: "directory" },
  { path: "/.git/config", type: "file" },
  { path: "/.git/objects/ab/cdef", type: "file" },
  { path: "/deploy/id_rsa", type: "symlink" },
  { path: "/deploy/server.pem", type: "file" },
  { path: "/credentials/aws.json", type: "file" },
];

describe("lint", () => {
  test("a typo that exposes a secret shows twice: the rule matches nothing, the secret is visible", () => {
    const findings = lint(
      [
        { pattern: "**/*", permission: "read" },
        { pattern: "/secret/**", permission: "none" },
      ],
      [{ path: "/secrets/token", type: "file" }],
    );
    expect(findings).toEqual([
      {
        kind: "secret-visible",
        severity: "warning",
        rule: 0,
        path: "/secrets/token",
        level: "read",
        message: "/secrets/token looks like a secret, and rule 0 gives it the level read",
      },
      {
        kind: "matches-nothing",
        severity: "warning",
        rule: 1,
        pattern: "/secret/**",
        message: 'rule 1 ("/secret/**") matches nothing',
      },
    ]);
  });

  test("environment files, keys, credentials and .git/config are secrets; the rest of a repository is not", () => {
    const visible = lint(getPreset("read-only"), TREE).filter(({ kind }) => kind === "secret-visible");
    expect(visible.map((finding) => (finding.kind === "secret-visible" ? finding.path : ""))).toEqual([
      "/secrets/token",
      "/.env.local",
      "/.git/config",
      "/deploy/id_rsa",
      "/deploy/server.pem",
      "/credentials/aws.json",
    ]);
  });

  test("only files that can be read are searched for keys, and not those whose names tell already", () => {
    const asked: string[] = [];
    const rules: Rule[] = [
      { pattern: "**/*", permission: "read" },
      { pattern: "/output/**", permission: "write" },
      { pattern: "/media/**", permission: "view" },
      { pattern: "/hidden.txt", permission: "none" },
    ];
    const paths = ["/a.txt", "/output/b.txt", "/media/c.txt", "/hidden.txt", "/.env"];
    const tree: TreeEntry[] = [
      ...paths.map((path) => ({ path, type: "file" as const })),
      { path: "/link.txt", type: "symlink" },
      { path: "/pipe", type: "other" },
    ];
    const key = `glpat-${"Zk3vQ9xLm2Tf7Rb1Wc8Y"}`;
    const findings = lint(rules, tree, ({ path }) => {
      asked.push(path);
      return path === "/a.txt" ? undefined : `one\n${key}\n${key}\n`;
    });
    expect(asked).toEqual(["/a.txt", "/output/b.txt"]);
    expect(findings.filter(({ kind }) => kind === "secret-inside")).toEqual([
      {
        kind: "secret-inside",
        severity: "warning",
        rule: 1,
        path: "/output/b.txt",
        level: "write",
        secret: "GitLab token",
        line: 2,
        masked: "glpat-…",
        count: 2,
        message:
          "/output/b.txt:2 holds what looks like a secret (GitLab token, glpat-… and 1 more), and rule 1 gives it the level write",
      },
    ]);
  });

  test("names alone are less than content", () => {
    const severities = lint(getPreset("view-only"), TREE).map(({ severity }) => severity);
    expect(new Set(severities)).toEqual(new Set(["info"]));
  });

  test("agent-safe leaves no warning", () => {
    expect(lint(getPreset("agent-safe"), TREE).filter(({ severity }) => severity === "warning")).toEqual([]);
  });

  test("a rule that matches only a directory on the way matches something", () => {
    const findings = lint(
      [
        { pattern: "/deploy", permission: "view" },
        { pattern: "/.git/objects/ab", permission: "view" },
      ],
      TREE,
    );
    expect(findings).toEqual([]);
  });

  test("a place to write need not exist yet", () => {
    expect(lint([{ pattern: "/output/**", permission: "write" }], TREE)).toMatchObject([
      { kind: "matches-nothing", severity: "info", rule: 0 },
    ]);
  });

  test("ties are reported once, with the rule that wins and an example", () => {
    const findings = lint(
      [
        { pattern: "/src/*", permission: "write" },
        { pattern: "/*/src", permission: "write" },
        { pattern: "/src/**", permission: "view" },
      ],
      [...TREE, { path: "/src/other.ts", type: "file" }],
    );
    expect(findings.filter(({ kind }) => kind === "tie")).toMatchObject([
      { kind: "tie", severity: "warning", rule: 2, other: 0, path: "/src/main.ts" },
    ]);
  });

  test("a tie with a directory that is hidden is a tie", () => {
    const findings = lint(
      [
        { pattern: "/abc", permission: "none", type: "file" },
        { pattern: "/abc/x", permission: "none", priority: -1 },
        { pattern: "ab?", permission: "none" },
        { pattern: "/*/xy", permission: "read" },
      ],
      [{ path: "/abd/xy", type: "file" }],
    );
    expect(findings.filter(({ kind }) => kind === "tie")).toMatchObject([{ rule: 2, other: 3, path: "/abd/xy" }]);
  });

  test("equal rank and equal level is no tie, and a tie below the deciding rank does not matter", () => {
    const findings = lint(
      [
        { pattern: "/src/*", permission: "write" },
        { pattern: "/src/**", permission: "view" },
        { pattern: "**/*", permission: "read", priority: 1 },
        { pattern: "**", permission: "read", priority: 1 },
      ],
      TREE,
    );
    expect(findings.filter(({ kind }) => kind === "tie")).toEqual([]);
  });

  test("a rule replaced by the same pattern later is reported", () => {
    const findings = lint(
      [
        { pattern: "/src/**", permission: "none" },
        { pattern: "/src/**", permission: "read", type: "glob" },
      ],
      TREE,
    );
    expect(findings).toMatchObject([{ kind: "replaced", rule: 0, by: 1 }]);
  });

  test("rules that do not compile are refused", () => {
    expect(() => lint([{ pattern: "", permission: "read" }], TREE)).toThrow(RuleError);
  });

  test("the order of the tree does not matter", () => {
    const sorted = (entries: TreeEntry[]) =>
      lint(getPreset("read-only"), entries)
        .map(({ message }) => message)
        .sort();
    expect(sorted(TREE.toReversed())).toEqual(sorted(TREE));
  });
});
