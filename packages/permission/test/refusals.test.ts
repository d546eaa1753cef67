import { describe, expect, test } from "vitest";
import { compileRules, LIMITS, parseRules, type Rule, RuleError } from "../src/index.ts";

const GOOD = { pattern: "**/*", permission: "read" };

function refusal(make: () => unknown): { index: number; pattern: string; reason: string } {
  try {
    make();
  } catch (error) {
    if (error instanceof RuleError) return { index: error.index, pattern: error.pattern, reason: error.reason };
    throw error;
  }
  throw new Error("was accepted");
}

describe("a malformed pattern is refused with its index and reason", () => {
  test.each([
    ["", "empty"],
    ["!/src", "negation"],
    ["/a\0b", "NUL"],
    ["/a\\\0b", "NUL"],
    ["//", "empty segment"],
    ["//a", "empty segment"],
    ["/a//b", "empty segment"],
    ["/a//", "empty segment"],
    ["/a/{,b}/c", "empty segment"],
    ["{,a}", "empty segment"],
    [".", ". or .."],
    ["..", ". or .."],
    ["/../a", ". or .."],
    ["/a/./b", ". or .."],
    ["./a", ". or .."],
    ["/a/..", ". or .."],
    ["/a/.{.,x}", ". or .."],
    ["/a/\\.\\.", ". or .."],
    ["/a{b", "not closed"],
    ["/a{b,c", "not closed"],
    ["/a}b", "not opened"],
    ["/{a}", "at least two"],
    ["{}", "at least two"],
    ["/{1..3}", "at least two"],
    ["/a[b", "not closed"],
    ["/a]b", "not opened"],
    ["/[]", "empty"],
    ["/[]a]", "empty"],
    ["/[!]", "empty"],
    ["/[a/b]", "slash"],
    ["/[z-a]", "backwards"],
    ["/[[:alpha:]]", "named classes"],
    ["/a\\", "backslash"],
    ["/a\\/b", "slash cannot be escaped"],
    ["/{a/,b}", "ends in a slash"],
    ["{/,a}", "ends in a slash"],
    ["/{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p}{q,r}", "more than 256"],
    ["{a,b}".repeat(800), "more than 256"],
    ["/a**b**c**d**e**f**g**h**i**j", "more than 256"],
    ["/a**b".repeat(9), "more than 256"],
    ["/".padEnd(4097, "a"), "longer than 4096"],
  ])("%j", (pattern, reason) => {
    const found = refusal(() => compileRules([GOOD as Rule, { pattern, permission: "read" }]));
    expect(found.index).toBe(1);
    expect(found.reason).toContain(reason);
    if (pattern.length <= LIMITS.patternLength) expect(found.pattern).toBe(pattern);
    expect(refusal(() => parseRules([GOOD, { pattern, permission: "read" }]))).toEqual(found);
  });

  test.each([
    ["/a/*", "file"],
    ["/a/?", "directory"],
    ["/{a,b}", "file"],
    ["/[a]", "directory"],
    ["**", "directory"],
  ] as const)("%s with type %s has a wildcard where a literal path belongs", (pattern, type) => {
    expect(refusal(() => compileRules([{ pattern, type, permission: "none" }]))).toMatchObject({
      index: 0,
      pattern,
      reason: expect.stringContaining("wildcard"),
    });
  });

  test("a file pattern does not end in a slash", () => {
    expect(refusal(() => compileRules([{ pattern: "/a/", type: "file", permission: "none" }])).reason).toContain(
      "slash",
    );
  });

  test("a megabyte of pattern does not come back in the error", () => {
    const error = (() => {
      try {
        return compileRules([{ pattern: "a".repeat(1 << 20), permission: "read" }]);
      } catch (caught) {
        return caught as RuleError;
      }
    })() as RuleError;
    expect(error.message.length + error.pattern.length).toBeLessThan(1000);
  });

  test("the message shows index, pattern and reason, with control characters escaped", () => {
    expect(() => compileRules([{ pattern: "/a\n//b", permission: "read" }])).toThrow(
      'rule 0 ("/a\\n//b"): the pattern has an empty segment',
    );
  });
});

describe("limits", () => {
  test("at the limit is accepted", () => {
    compileRules([{ pattern: "/".padEnd(4096, "a"), permission: "read" }]);
    compileRules([{ pattern: "/{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p}", permission: "read" }]);
    compileRules(Array.from({ length: 10_000 }, (_, i) => ({ pattern: `/f${i}`, permission: "read" })));
    compileRules([{ pattern: "/a", permission: "read", priority: Number.MAX_SAFE_INTEGER }]);
    compileRules([{ pattern: "/a", permission: "read", priority: Number.MIN_SAFE_INTEGER }]);
  });

  test("one rule too many", () => {
    const many = Array.from({ length: 10_001 }, () => GOOD);
    expect(refusal(() => compileRules(many as Rule[]))).toMatchObject({ index: -1 });
    expect(refusal(() => parseRules(many))).toMatchObject({ index: -1 });
  });

  test("too much text over all rules, braces expanded", () => {
    const long = Array.from({ length: 9 }, (_, i) => ({
      pattern: `/{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}${i}${"x".repeat(2000)}`,
      permission: "read" as const,
    }));
    expect(refusal(() => compileRules(long))).toMatchObject({ index: 8, reason: expect.stringContaining("1048576") });
  });

  test("glued ** count as what they stand for", () => {
    const glued = Array.from({ length: 5 }, (_, i) => ({
      pattern: `/${"a**".repeat(8)}${i}${"x".repeat(2000)}`,
      permission: "read" as const,
    }));
    expect(refusal(() => compileRules(glued))).toMatchObject({ index: 2, reason: expect.stringContaining("1048576") });
  });

  test("too many path segments over all rules", () => {
    const deep = Array.from({ length: 60 }, (_, i) => ({
      pattern: `/${i}${"/a".repeat(2000)}`,
      permission: "read" as const,
    }));
    expect(refusal(() => compileRules(deep))).toMatchObject({ index: 49, reason: expect.stringContaining("100000") });
  });
});

describe("untrusted data", () => {
  test.each<[string, unknown, number, string]>([
    ["no list", { rules: [] }, -1, "list"],
    ["null", null, -1, "list"],
    ["text", "**/* read", -1, "list"],
    ["a text for a rule", [GOOD, "/a"], 1, "object"],
    ["null for a rule", [null], 0, "object"],
    ["a list for a rule", [[]], 0, "object"],
    ["a hole", new Array(1), 0, "object"],
    ["no pattern", [{ permission: "read" }], 0, "pattern"],
    ["a number for a pattern", [{ pattern: 1, permission: "read" }], 0, "pattern"],
    ["no permission", [{ pattern: "/a" }], 0, "permission"],
    ["an unknown level", [{ pattern: "/a", permission: "execute" }], 0, "none, view, read, write"],
    ["a level in capitals", [{ pattern: "/a", permission: "READ" }], 0, "none, view, read, write"],
    ["a member of Object for a level", [{ pattern: "/a", permission: "constructor" }], 0, "none, view, read, write"],
    ["an unknown type", [{ pattern: "/a", permission: "read", type: "regex" }], 0, "type"],
    ["a member of Object for a type", [{ pattern: "/a", permission: "read", type: "toString" }], 0, "type"],
    ["null for a type", [{ pattern: "/a", permission: "read", type: null }], 0, "type"],
    ["a text for a priority", [{ pattern: "/a", permission: "read", priority: "100" }], 0, "priority"],
    ["a fraction", [{ pattern: "/a", permission: "read", priority: 1.5 }], 0, "priority"],
    ["not a number", [{ pattern: "/a", permission: "read", priority: Number.NaN }], 0, "priority"],
    ["infinity", [{ pattern: "/a", permission: "read", priority: Infinity }], 0, "priority"],
    ["an unsafe integer", [{ pattern: "/a", permission: "read", priority: 2 ** 53 }], 0, "priority"],
    ["a misspelt field", [{ pattern: "/a", permission: "read", priorty: 1 }], 0, '"priorty"'],
    ["a prototype", JSON.parse('[{"pattern":"/a","permission":"read","__proto__":{}}]'), 0, "__proto__"],
  ])("%s is refused", (_, value, index, reason) => {
    const found = refusal(() => parseRules(value));
    expect(found.index).toBe(index);
    expect(found.reason).toContain(reason);
  });

  test("what is right comes back as it is", () => {
    const rules = [
      { pattern: "/a", permission: "none", type: "file", priority: -5 },
      { pattern: "**/*", permission: "write" },
    ];
    expect(parseRules(rules)).toEqual(rules);
    expect(parseRules([])).toEqual([]);
  });

  test("compileRules checks values that types cannot hold back", () => {
    const compile = (rule: unknown) => () => compileRules([rule as Rule]);
    expect(refusal(compile({ pattern: "/a", permission: "all" })).index).toBe(0);
    expect(refusal(compile({ pattern: "/a", permission: undefined })).index).toBe(0);
    expect(refusal(compile({ pattern: "/a", permission: "read", priority: 0.5 })).index).toBe(0);
    expect(refusal(compile({ pattern: "/a", permission: "read", type: "regex" })).index).toBe(0);
    expect(refusal(compile({ pattern: 7, permission: "read" })).index).toBe(0);
  });
});
