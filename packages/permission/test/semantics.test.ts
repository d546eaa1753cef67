import { describe, expect, test } from "vitest";
import { compileRules, type Level, levelName, type Rule } from "../src/index.ts";

/** A rule written as "pattern level", "pattern level @priority" or with a type: "pattern level file @5". */
function rules(...lines: string[]): Rule[] {
  return lines.map((line) => {
    const words = line.split(" ");
    const [pattern, permission, ...rest] = words as [string, Level, ...string[]];
    const type = rest.find((word) => !word.startsWith("@")) as Rule["type"];
    const priority = rest.find((word) => word.startsWith("@"));
    return {
      pattern,
      permission,
      ...(type === undefined ? {} : { type }),
      ...(priority === undefined ? {} : { priority: Number(priority.slice(1)) }),
    };
  });
}

function levels(set: readonly Rule[], paths: readonly string[]): Record<string, Level> {
  const policy = compileRules(set);
  return Object.fromEntries(paths.map((path) => [path, levelName(policy.decide(path).level)]));
}

/** Which of the paths one pattern matches, found with a level that nothing inherits. */
function matched(pattern: string, paths: readonly string[], type?: Rule["type"]): string[] {
  const policy = compileRules([{ pattern, permission: "read", ...(type === undefined ? {} : { type }) }]);
  return paths.filter((path) => policy.decide(path).level > 0);
}

describe("type", () => {
  const PATHS = ["/", "/docs", "/docs/a", "/docs/a/b", "/docsx", "/x/docs", "/x/docs/a"];

  test.each([
    ["/docs/", undefined, ["/docs", "/docs/a", "/docs/a/b"]],
    ["docs/", undefined, ["/docs", "/docs/a", "/docs/a/b"]],
    ["/docs", undefined, ["/docs"]],
    ["x/docs", undefined, ["/x/docs"]],
    ["docs", undefined, ["/docs", "/x/docs"]],
    ["/docs", "glob", ["/docs"]],
    ["/docs/", "glob", ["/docs", "/docs/a", "/docs/a/b"]],
    ["docs", "glob", ["/docs", "/x/docs"]],
    ["/docs", "directory", ["/docs", "/docs/a", "/docs/a/b"]],
    ["docs", "directory", ["/docs", "/docs/a", "/docs/a/b"]],
    ["/docs/", "directory", ["/docs", "/docs/a", "/docs/a/b"]],
    ["/docs", "file", ["/docs"]],
    ["docs", "file", ["/docs"]],
    ["**/docs/", undefined, ["/docs", "/docs/a", "/docs/a/b", "/x/docs", "/x/docs/a"]],
    ["/", undefined, PATHS],
    ["/", "directory", PATHS],
    ["/", "file", ["/"]],
  ] as const)("%s as %s", (pattern, type, expected) => {
    expect(matched(pattern, PATHS, type)).toEqual(expected);
  });
});

describe("glob", () => {
  test.each<[string, string[], string[]]>([
    // * and ? stay within one segment
    ["/a/*", ["/a/b", "/a/.b"], ["/", "/a", "/a/b/c"]],
    ["/a/*.ts", ["/a/x.ts", "/a/.ts"], ["/a/b/x.ts", "/a/x.tsx"]],
    ["/a?c", ["/abc", "/a.c", "/a\nc", "/a😀c", "/a\udc80c"], ["/ac", "/a/c", "/abbc"]],
    // ** spans any number of segments, wherever and however often
    [
      "**/secrets/**",
      ["/secrets", "/secrets/a", "/x/secrets", "/x/y/secrets/z/w"],
      ["/", "/x", "/secretsx", "/x/asecrets"],
    ],
    [
      "/src/**/test/**/*.snap",
      ["/src/test/a.snap", "/src/x/test/a.snap", "/src/x/y/test/z/w/a.snap"],
      ["/src/a.snap", "/test/a.snap", "/src/test", "/src/test/a.snapx"],
    ],
    ["/a/**/b", ["/a/b", "/a/x/b", "/a/x/y/b"], ["/a", "/b", "/a/b/x"]],
    ["/a/**/**/b", ["/a/b", "/a/x/b"], ["/a"]],
    // glued to other text it spans too
    ["/a**b", ["/ab", "/axb", "/a/b", "/ax/yb", "/a/x/y/b"], ["/a", "/a/bx", "/xab"]],
    ["**.key", ["/x.key", "/a/b/x.key"], ["/x.keys"]],
    ["/src/**.key", ["/src/x.key", "/src/a/x.key"], ["/x.key"]],
    // X/** covers X itself
    ["/x/**", ["/x", "/x/a", "/x/a/b"], ["/", "/xa"]],
    ["/x/**/*", ["/x/a", "/x/a/b"], ["/", "/x"]],
    // a pattern without a slash matches at any depth, one with a slash is anchored
    ["*.env*", ["/.env", "/.env.local", "/a/b/x.env.production"], ["/a/env"]],
    ["README.md", ["/README.md", "/a/README.md"], ["/a/README.md/x"]],
    ["a/*.md", ["/a/x.md"], ["/b/a/x.md"]],
    ["/*.md", ["/x.md"], ["/a/x.md"]],
    // classes
    ["/[abc].ts", ["/a.ts", "/c.ts"], ["/d.ts", "/.ts", "/ab.ts"]],
    ["/[a-c0-9]", ["/b", "/5"], ["/d", "/-"]],
    ["/[!a-c]", ["/d", "/\n", "/\u2028", "/😀", "/\udc80"], ["/a", "/dd"]],
    ["/[^a]", ["/b", "/^"], ["/a"]],
    ["/[-a]", ["/-", "/a"], ["/b"]],
    ["/[a-]", ["/-", "/a"], ["/b"]],
    ["/[\\]\\\\]", ["/]", "/\\"], ["/["]],
    ["/[{,}*?]", ["/{", "/,", "/}", "/*", "/?"], ["/a"]],
    ["/[😀-😂]", ["/😁"], ["/😄", "/\ud83d"]],
    ["/x[!y]z", ["/xaz"], ["/x/z", "/xz"]],
    // braces, nested, with slashes, with an empty branch
    ["/{src,lib}/*.{ts,js}", ["/src/a.ts", "/lib/a.js"], ["/src/a.py", "/bin/a.ts"]],
    ["/{a,b{c,d}}", ["/a", "/bc", "/bd"], ["/b", "/ac"]],
    ["/{src,lib/core}/**", ["/src/a", "/lib/core", "/lib/core/a"], ["/lib", "/lib/a"]],
    ["/a{,/b}", ["/a", "/a/b"], ["/", "/a/c"]],
    ["*.{key,pem}", ["/x.key", "/a/x.pem"], ["/x.crt"]],
    ["{a,b/c}", ["/a", "/b/c"], ["/x/a", "/x/b/c"]],
    // escapes
    ["/\\*", ["/*"], ["/a"]],
    ["/\\{a,b\\}", ["/{a,b}"], ["/a"]],
    ["\\!important", ["/!important", "/a/!important"], ["/important"]],
    ["/a\\b", ["/ab"], ["/a\\b"]],
    // dotfiles are not special; case is
    ["**/*.pem", ["/docs/.tls/server.pem", "/.pem"], ["/server.PEM"]],
    ["/.*", ["/.env", "/.."].slice(0, 1), ["/env"]],
    [".env", ["/.env"], ["/.ENV", "/.Env"]],
    // one form of a letter is not the other
    ["/caf\u00e9", ["/caf\u00e9"], ["/cafe\u0301"]],
    // characters that regular expressions and JavaScript objects know
    ["/a.c", ["/a.c"], ["/abc"]],
    ["/(a|b)+$", ["/(a|b)+$"], ["/a"]],
    ["**/*.k", ["/a\nb.k", "/\u2028/\u2029.k", "/a\\b.k", "/[x].k", "/\udc80.k"], ["/a\n"]],
    ["/__proto__", ["/__proto__"], ["/constructor", "/toString"]],
    // half a surrogate pair is not part of a whole one
    ["/*\ude00", ["/x\ude00"], ["/\ud83d\ude00"]],
    ["/\ud83d*", ["/\ud83dx"], ["/\ud83d\ude00"]],
  ])("%j", (pattern, yes, no) => {
    expect(matched(pattern, [...yes, ...no])).toEqual(yes);
  });

  test.each(["**", "/**", "**/*", "/**/*", "*", "**/**", "***", "/"])(
    "%s covers everything, the root included",
    (pattern) => {
      const root = compileRules([{ pattern, permission: "write" }]).root;
      expect([root.level, root.uniform]).toEqual([3, true]);
    },
  );

  test.each(["/*", "/*/**", "**/?*", "a", "**/a/**"])("%s does not cover the root", (pattern) => {
    expect(compileRules([{ pattern, permission: "write" }]).root.level).toBe(0);
  });
});

describe("order", () => {
  test("priority first, the higher wins; absent is 0", () => {
    expect(levels(rules("/a/x read", "*.x none @1"), ["/a/x.x"])).toEqual({ "/a/x.x": "none" });
    expect(levels(rules("/a write", "* none @1"), ["/a"])).toEqual({ "/a": "none" });
    expect(levels(rules("/a write @-1", "* view"), ["/a"])).toEqual({ "/a": "view" });
    expect(levels(rules("/a write", "/a* none @0"), ["/a"])).toEqual({ "/a": "write" });
  });

  test("then file over directory over glob, whatever the length", () => {
    expect(levels(rules("/abc/d* none", "/abc/ read"), ["/abc/def"])).toEqual({ "/abc/def": "read" });
    expect(levels(rules("/a/b/ none", "/a/b/c write"), ["/a/b/c", "/a/b/d"])).toEqual({
      "/a/b/c": "write",
      "/a/b/d": "none",
    });
  });

  test("then more literal text", () => {
    const set = rules("**/* read", "**/.env* none", "/secrets/** view", "/secrets/public.key write");
    expect(levels(set, ["/a", "/.env", "/secrets/.env", "/secrets/public.key"])).toEqual({
      "/a": "read",
      "/.env": "none",
      "/secrets/.env": "view",
      "/secrets/public.key": "write",
    });
  });

  test("slashes, wildcards and classes are not literal text", () => {
    expect(levels(rules("/a/*/** none", "/[abc]/b? write"), ["/a/bx"])).toEqual({ "/a/bx": "none" });
    expect(levels(rules("**/**/a/** none", "/?/ab write"), ["/a/ab"])).toEqual({ "/a/ab": "write" });
  });

  test("an alternative of a brace pattern has the literal text of its own", () => {
    const set = rules("/a/** view", "{a/*,b/longer*} write");
    expect(levels(set, ["/a/x", "/b/longer1"])).toEqual({ "/a/x": "view", "/b/longer1": "write" });
  });

  test("the same pattern twice at one priority: the later replaces the earlier", () => {
    expect(levels(rules("/a/** none", "/a/** write"), ["/a/b"])).toEqual({ "/a/b": "write" });
    expect(levels(rules("/a/** write", "/a/** none"), ["/a/b"])).toEqual({ "/a/b": "none" });
    expect(levels(rules("/a/** write @1", "/a/** none"), ["/a/b"])).toEqual({ "/a/b": "write" });
    expect(compileRules(rules("/a write", "/a read")).grantsWrite).toBe(false);
  });

  test("a pattern of another type is another pattern", () => {
    expect(levels(rules("/a none file", "/a write directory"), ["/a"])).toEqual({ "/a": "none" });
  });

  test("any other tie: the stricter wins, in whatever order", () => {
    expect(levels(rules("/a?/** write", "/?a/** view"), ["/aa"])).toEqual({ "/aa": "view" });
    expect(levels(rules("/?a/** view", "/a?/** write"), ["/aa"])).toEqual({ "/aa": "view" });
    expect(levels(rules("*.key none", "**/*.key write"), ["/x.key"])).toEqual({ "/x.key": "none" });
    expect(levels(rules("**/*.key write", "*.key none"), ["/x.key"])).toEqual({ "/x.key": "none" });
  });

  test("nothing matches: none, and no rules hide everything", () => {
    expect(levels(rules("/a read"), ["/b", "/a/b", "/"])).toEqual({ "/b": "none", "/a/b": "none", "/": "none" });
    const { root } = compileRules([]);
    expect([root.level, root.rule, root.mayShowBelow, root.mayHideBelow, root.uniform]).toEqual([
      0,
      -1,
      false,
      true,
      true,
    ]);
  });
});

describe("a hidden directory hides all below it", () => {
  test("at its own rank", () => {
    const set = rules("**/credentials* none", "**/* read");
    expect(levels(set, ["/credentials", "/credentials/aws.json", "/x/credentials.d/a/b", "/cred"])).toEqual({
      "/credentials": "none",
      "/credentials/aws.json": "none",
      "/x/credentials.d/a/b": "none",
      "/cred": "read",
    });
  });

  test("a file rule too", () => {
    expect(levels(rules("**/* read", "/private none"), ["/private", "/private/a"])).toEqual({
      "/private": "none",
      "/private/a": "none",
    });
  });

  test("only a rule that outranks it can show something below", () => {
    const set = rules("**/* read", "/secrets/** none", "/secrets/public.key read", "/secrets/pub/** view");
    expect(levels(set, ["/secrets", "/secrets/private.key", "/secrets/public.key", "/secrets/pub/x"])).toEqual({
      "/secrets": "none",
      "/secrets/private.key": "none",
      "/secrets/public.key": "read",
      "/secrets/pub/x": "view",
    });
    expect(levels(rules("/secrets none @10", "/secrets/a write"), ["/secrets/a"])).toEqual({ "/secrets/a": "none" });
    expect(levels(rules("/secrets none @10", "/secrets/a write @11"), ["/secrets/a"])).toEqual({
      "/secrets/a": "write",
    });
  });

  test("a tie is hidden", () => {
    expect(levels(rules("/abcd none", "/?*/abcd write"), ["/abcd/abcd"])).toEqual({ "/abcd/abcd": "none" });
    expect(levels(rules("ab none", "/*/?b write @0", "/*/a? read"), ["/ab/ab"])).toEqual({ "/ab/ab": "none" });
    expect(levels(rules("ab none", "/*/xy write"), ["/ab/xy"])).toEqual({ "/ab/xy": "none" });
    expect(levels(rules("ab none", "/*/xyz write"), ["/ab/xyz"])).toEqual({ "/ab/xyz": "write" });
  });

  test("view, read and write are not inherited", () => {
    expect(levels(rules("/a write"), ["/a", "/a/b"])).toEqual({ "/a": "write", "/a/b": "none" });
  });

  test("a directory hidden by a rule that itself lost still hides below", () => {
    // At /ab the file rule wins; for /ab/x it does not count, and the none rule does.
    expect(levels(rules("/a* none", "/ab read", "**/* read"), ["/ab", "/ab/x"])).toEqual({
      "/ab": "read",
      "/ab/x": "none",
    });
  });
});

describe("paths", () => {
  test.each(["", "a", "a/b", "/a/", "//", "/a//b", "/./a", "/a/..", "/a\0"])("%j is not a path", (path) => {
    const policy = compileRules([]);
    expect(() => policy.decide(path)).toThrow(TypeError);
    expect(() => policy.explain(path)).toThrow(TypeError);
  });
});
