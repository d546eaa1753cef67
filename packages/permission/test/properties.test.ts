import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rounds } from "../../../test/support/rounds.ts";
import { compileRules, type Level, levelName, type Rule, type Scope } from "../src/index.ts";
import { referenceLevel } from "./reference.ts";

// Few letters, so that patterns meet names; and every character that a matcher might treat as special.
const NAMES = [
  "a",
  "b",
  "ab",
  "ba",
  ".a",
  "aab",
  "a.b",
  "A",
  "a\nb",
  "\u2028",
  "[a]",
  "a\\b",
  "{a,b}",
  "*",
  "é",
  "e\u0301",
];
const ODD_NAMES = [
  "😀",
  "a😀b",
  "\udc80",
  "\udc80a",
  "a\udcff\udc80",
  "\ud83d",
  "!a",
  "^",
  "-",
  "]",
  "a b",
  "__proto__",
];

const level = fc.constantFrom<Level>("none", "view", "read", "write");
const priority = fc.constantFrom(undefined, 0, 0, 1, 5, -3);

const character = fc.constantFrom(
  "a",
  "b",
  "a",
  "b",
  ".",
  "A",
  "\n",
  "\u2028",
  "é",
  "😀",
  "\udc80",
  "-",
  "^",
  " ",
  "(",
  "$",
);
const escaped = fc.constantFrom(..."\\*?[]{},!ab").map((c) => `\\${c}`);
const member = fc.oneof(
  fc.constantFrom("a", "b", ".", "😀", "\udc80", "*", "?", "{", ",", "^", "\\]", "\\\\"),
  fc.constantFrom("a-c", "\\--b", "\n-a"),
);
const characterClass = fc
  .tuple(fc.constantFrom("", "", "!", "^"), fc.array(member, { minLength: 1, maxLength: 3 }))
  .map(([negation, members]) => `[${negation}${members.join("").replace(/^[!^]/, "a")}]`);
const atom = fc.oneof(
  { weight: 6, arbitrary: character },
  { weight: 3, arbitrary: fc.constant("*") },
  { weight: 1, arbitrary: fc.constant("?") },
  { weight: 1, arbitrary: fc.constant("**") },
  { weight: 1, arbitrary: escaped },
  { weight: 1, arbitrary: characterClass },
);
const text = fc.array(atom, { minLength: 1, maxLength: 3 }).map((atoms) => atoms.join(""));
const braces = fc
  .array(fc.oneof(text, fc.constant(""), fc.constant("a/b")), { minLength: 2, maxLength: 3 })
  .map((b) => `{${b.join(",")}}`);
const segment = fc.oneof(
  { weight: 4, arbitrary: text },
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "ab", ".a") },
  { weight: 3, arbitrary: fc.constant("**") },
  { weight: 2, arbitrary: fc.constant("*") },
  { weight: 1, arbitrary: fc.tuple(text, braces).map((parts) => parts.join("")) },
  { weight: 1, arbitrary: fc.tuple(braces, text).map((parts) => parts.join("")) },
);
const wildPattern = fc
  .tuple(
    fc.constantFrom("/", "/", ""),
    fc.array(segment, { minLength: 1, maxLength: 4 }),
    fc.constantFrom("", "", "", "/"),
  )
  .map(([start, segments, end]) => start + segments.join("/") + end);
const literalPath = fc
  .array(fc.constantFrom("a", "b", "ab", ".a", "\\[a\\]", "é"), { minLength: 1, maxLength: 3 })
  .map((names) => `/${names.join("/")}`);

const rule: fc.Arbitrary<Rule> = fc
  .oneof(
    { weight: 4, arbitrary: fc.record({ pattern: wildPattern, type: fc.constantFrom(undefined, "glob" as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        pattern: literalPath,
        type: fc.constantFrom("file" as const, "directory" as const, undefined),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        pattern: fc.constantFrom("/", "**", "**/*", "/**", "*", "/*", "/*/**", "/**/*/"),
        type: fc.constant(undefined),
      }),
    },
  )
  .chain(({ pattern, type }) =>
    fc.tuple(level, priority).map(([permission, p]) => ({
      pattern,
      permission,
      ...(type === undefined ? {} : { type }),
      ...(p === undefined ? {} : { priority: p }),
    })),
  );
const ruleSet = fc.array(rule, { maxLength: 6 }).filter((rules) => {
  try {
    compileRules(rules);
    return true;
  } catch {
    return false;
  }
});
const name = fc.oneof(
  fc.constantFrom(...NAMES),
  fc.constantFrom(...ODD_NAMES),
  fc.string({ unit: character, minLength: 1, maxLength: 4 }).filter((n) => n !== "." && n !== ".."),
);
const path = fc.array(name, { maxLength: 4 }).map((names) => `/${names.join("/")}`);

describe("against the reference", () => {
  test("every decision is the reference's", () => {
    fc.assert(
      fc.property(ruleSet, fc.array(path, { minLength: 1, maxLength: 20 }), (rules, paths) => {
        const policy = compileRules(rules);
        for (const one of paths) {
          const scope = policy.decide(one);
          expect({ path: one, level: levelName(scope.level) }).toEqual({
            path: one,
            level: referenceLevel(rules, one),
          });
        }
      }),
      { numRuns: rounds(1000) },
    );
  });

  test("explain names the rule that decides and its level", () => {
    fc.assert(
      fc.property(ruleSet, path, (rules, one) => {
        const policy = compileRules(rules);
        const scope = policy.decide(one);
        const explanation = policy.explain(one);
        expect([explanation.rule, explanation.level]).toEqual([scope.rule, levelName(scope.level)]);
        expect(scope.rule < 0 ? "none" : rules[scope.rule]!.permission).toBe(levelName(scope.level));
      }),
      { numRuns: rounds(700) },
    );
  });

  test("the order of rules matters only where the same pattern stands twice", () => {
    fc.assert(
      fc.property(
        ruleSet.filter((rules) => new Set(rules.map(({ pattern }) => pattern)).size === rules.length),
        path,
        (rules, one) => {
          expect(compileRules(rules.toReversed()).decide(one).level).toBe(compileRules(rules).decide(one).level);
        },
      ),
      { numRuns: rounds(200) },
    );
  });

  test("what a scope says about all below is true of a small tree", () => {
    fc.assert(
      fc.property(ruleSet, (rules) => {
        const policy = compileRules(rules);
        checkBelow(policy.root, "/", rules, 3);
      }),
      { numRuns: rounds(100) },
    );
  });
});

const TREE_NAMES = ["a", "b", "ab", ".a", "é", "zz"];

/** Compares the three flags of a scope with the levels the reference gives to everything below; returns those. */
function checkBelow(scope: Scope, at: string, rules: readonly Rule[], depth: number): Set<Level> {
  const below = new Set<Level>();
  if (depth > 0) {
    for (const child of TREE_NAMES) {
      const childPath = at === "/" ? `/${child}` : `${at}/${child}`;
      below.add(referenceLevel(rules, childPath));
      for (const found of checkBelow(scope.child(child), childPath, rules, depth - 1)) below.add(found);
    }
  }
  const own = referenceLevel(rules, at);
  const shown = [...below].some((found) => found !== "none");
  const wrong = {
    level: levelName(scope.level) !== own,
    mayShowBelow: !scope.mayShowBelow && shown,
    mayHideBelow: !scope.mayHideBelow && below.has("none"),
    uniform: scope.uniform && [...below].some((found) => found !== own),
  };
  expect({ at, ...wrong }).toEqual({ at, level: false, mayShowBelow: false, mayHideBelow: false, uniform: false });
  return below;
}
