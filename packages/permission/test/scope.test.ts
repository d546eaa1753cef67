import { describe, expect, test } from "vitest";
import { withoutHanging } from "../../../test/support/eventually.ts";
import { collectGarbage } from "../../../test/support/garbage.ts";
import { compileRules, getPreset, levelName, type Rule, type Scope } from "../src/index.ts";

function flags(scope: Scope) {
  const { mayShowBelow, mayHideBelow, uniform } = scope;
  return { level: levelName(scope.level), mayShowBelow, mayHideBelow, uniform };
}

describe("what a scope knows about all below", () => {
  test("full-access is uniform at the root", () => {
    const { root } = compileRules(getPreset("full-access"));
    expect(flags(root)).toEqual({ level: "write", mayShowBelow: true, mayHideBelow: false, uniform: true });
    expect(root.child("anything")).toBe(root);
  });

  test("a subtree that no none rule can reach hides nothing", () => {
    const policy = compileRules([
      { pattern: "**/*", permission: "read" },
      { pattern: "/secrets/**", permission: "none" },
      { pattern: "/src/*/private", permission: "none" },
      { pattern: "/src/gen/**", permission: "write", priority: 1 },
    ]);
    expect(policy.root.mayHideBelow).toBe(true);
    expect(flags(policy.decide("/docs"))).toEqual({
      level: "read",
      mayShowBelow: true,
      mayHideBelow: false,
      uniform: true,
    });
    expect(policy.decide("/src").mayHideBelow).toBe(true);
    expect(policy.decide("/src/a").mayHideBelow).toBe(true);
    expect(policy.decide("/src/a/b").mayHideBelow).toBe(false);
    // Outranked by the write rule, /src/*/private cannot hide anything here.
    expect(flags(policy.decide("/src/gen"))).toEqual({
      level: "write",
      mayShowBelow: true,
      mayHideBelow: false,
      uniform: true,
    });
  });

  test("a hidden directory that nothing outranking reaches into shows nothing", () => {
    const policy = compileRules([
      { pattern: "**/*", permission: "read" },
      { pattern: "**/*.md", permission: "read" },
      { pattern: "/a/deep/x", permission: "read" },
      { pattern: "/a/**", permission: "none", priority: 10 },
      { pattern: "/bbbb/**", permission: "none" },
      { pattern: "/bbbb/deep/x", permission: "read" },
    ]);
    const hidden = { level: "none", mayShowBelow: false, mayHideBelow: true, uniform: true };
    expect(flags(policy.decide("/a"))).toEqual(hidden);
    expect(flags(policy.decide("/bbbb"))).toEqual({ ...hidden, mayShowBelow: true, uniform: false });
    expect(flags(policy.decide("/bbbb/deep"))).toEqual({ ...hidden, mayShowBelow: true, uniform: false });
    expect(flags(policy.decide("/bbbb/other"))).toEqual(hidden);
  });

  test("X/**/* and X/*/** leave nothing below X hidden", () => {
    for (const pattern of ["/x/**/*", "/x/*/**"]) {
      expect(flags(compileRules([{ pattern, permission: "read" }]).decide("/x"))).toEqual({
        level: "none",
        mayShowBelow: true,
        mayHideBelow: false,
        uniform: false,
      });
    }
  });

  test("where no rule reaches any more, all is hidden and uniform", () => {
    const policy = compileRules([{ pattern: "/src/**", permission: "read" }]);
    expect(flags(policy.decide("/docs"))).toEqual({
      level: "none",
      mayShowBelow: false,
      mayHideBelow: true,
      uniform: true,
    });
  });
});

describe("scopes are shared", () => {
  test("equal situations are one object", () => {
    const { root } = compileRules(getPreset("agent-safe"));
    const src = root.child("src");
    expect(src.child("a")).toBe(src.child("b"));
    expect(src.child("a").child("c")).toBe(src.child("a"));
    expect(root.child("x").child(".env")).toBe(root.child("y").child("z").child(".env"));
  });

  test("rules given are copied: changing them later changes nothing", () => {
    const rules: { pattern: string; permission: "read" | "none" }[] = [{ pattern: "/a", permission: "none" }];
    const policy = compileRules(rules);
    rules[0]!.permission = "read";
    expect(policy.rules).toEqual([{ pattern: "/a", permission: "none" }]);
    expect(policy.explain("/a").level).toBe("none");
  });
});

describe("hostile names and patterns", () => {
  // Each letter in a name is a bit: 2^16 combinations of rules, far more than are remembered.
  const LETTERS = [..."abcdefghijklmnop"];
  const combining: Rule[] = [
    { pattern: "**/*", permission: "read" },
    ...LETTERS.map(
      (letter, i): Rule => ({ pattern: `**/*${letter}*/**/*x`, permission: i % 2 ? "view" : "write", priority: i + 1 }),
    ),
  ];
  const nameOf = (bits: number) => `_${LETTERS.filter((_, i) => bits & (1 << i)).join("_")}_`;

  test("names that hit ever new combinations of rules do not grow memory, and held scopes stay right", () => {
    const policy = compileRules(combining);
    const held: { scope: Scope; bits: number }[] = [];
    let before = 0;
    for (let i = 0; i < 60_000; i++) {
      const bits = (i * 40_503) & 0xffff;
      const scope = policy.root.child(nameOf(bits));
      if (i % 997 === 0) held.push({ scope, bits });
      if (i === 20_000) {
        collectGarbage();
        before = process.memoryUsage().heapUsed;
      }
    }
    collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(8 << 20);

    for (const { scope, bits } of held) {
      const highest = bits === 0 ? 0 : 32 - Math.clz32(bits);
      expect(scope.child("x").rule).toBe(highest);
      expect(scope.child("_").child("yx").rule).toBe(highest);
      expect(scope.child("y").rule).toBe(0);
    }
  });

  test("matching does not blow up, whatever the pattern", async () => {
    const stars = `/${"*a".repeat(2000)}*b`;
    const policy = compileRules([
      { pattern: stars, permission: "read" },
      { pattern: `/${"*[ab]?".repeat(500)}*b`, permission: "read" },
      { pattern: `/${"**a".repeat(8)}b`, permission: "read" },
      { pattern: `${"/**/a".repeat(600)}/b`, permission: "read" },
    ]);
    await withoutHanging(() => {
      expect(policy.decide(`/${"a".repeat(100_000)}`).level).toBe(0);
      expect(policy.decide(`/${"a".repeat(100_000)}b`).level).toBe(2);
      expect(policy.decide("/a".repeat(1000)).level).toBe(0);
      expect(policy.explain("/a".repeat(1000)).level).toBe("none");
    });
  });

  test("members of JavaScript objects are plain names", () => {
    const { root } = compileRules([{ pattern: "/a", permission: "read" }]);
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"])
      expect(root.child(name).rule).toBe(-1);
  });
});
