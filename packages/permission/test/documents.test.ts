import { describe, expect, test } from "vitest";
import { compileRules, extendPreset, getPreset, levelName, type Rule, registerPreset } from "../src/index.ts";

/** The samples of the product's documents, with the outcomes they state. */
function check(rules: readonly Rule[], outcomes: Record<string, string>): void {
  const policy = compileRules(rules);
  expect(Object.fromEntries(Object.keys(outcomes).map((path) => [path, levelName(policy.decide(path).level)]))).toEqual(
    outcomes,
  );
}

describe("concepts", () => {
  test("file pattern over glob", () => {
    check(
      [
        { pattern: "**/*", permission: "read" },
        { pattern: "/secrets/**", permission: "none" },
        { pattern: "/secrets/public.key", permission: "read" },
      ],
      { "/secrets/private.key": "none", "/secrets/public.key": "read", "/app/main.py": "read" },
    );
  });

  test("read all, write output, hide secrets, show the public key", () => {
    check(
      [
        { pattern: "**/*", permission: "read", priority: 0 },
        { pattern: "/output/**", permission: "write", priority: 10 },
        { pattern: "**/.env*", permission: "none", priority: 100 },
        { pattern: "/secrets/**", permission: "none", priority: 100 },
        { pattern: "**/*.key", permission: "none", priority: 100 },
        { pattern: "/secrets/public.key", permission: "read", priority: 200 },
      ],
      {
        "/README.md": "read",
        "/output/log.txt": "write",
        "/output/.env": "none",
        "/secrets/private.key": "none",
        "/secrets/public.key": "read",
        "/.env.production": "none",
      },
    );
  });

  test("extending a preset", () => {
    check(
      extendPreset({
        base: "agent-safe",
        additions: [{ pattern: "/logs/**", permission: "write" }],
        overrides: [{ pattern: "**/.git/**", permission: "read" }],
      }),
      { "/logs/app.log": "write", "/logs/.env": "none", "/.git": "read", "/.git/config": "read", "/src/a": "read" },
    );
  });

  test("a preset of one's own", () => {
    registerPreset("ci-pipeline", [
      { pattern: "**/*", permission: "read" },
      { pattern: "/build/**", permission: "write" },
      { pattern: "/dist/**", permission: "write" },
      { pattern: "**/node_modules/**", permission: "none" },
      { pattern: "**/.env*", permission: "none" },
    ]);
    check(getPreset("ci-pipeline"), {
      "/src/a": "read",
      "/build/a": "write",
      "/node_modules/a/b": "none",
      "/app/node_modules": "none",
      "/.env": "none",
    });
  });
});

describe("security model", () => {
  test("default deny", () => {
    check(
      [
        { pattern: "**/*", permission: "none" },
        { pattern: "/src/**", permission: "read" },
        { pattern: "/output/**", permission: "write" },
      ],
      { "/": "none", "/README.md": "none", "/src": "read", "/src/a/b": "read", "/output/x": "write" },
    );
  });

  test("view of metadata, read of code", () => {
    check(
      [
        { pattern: "/metadata/**", permission: "view" },
        { pattern: "**/*.py", permission: "read" },
        { pattern: "/docs/**", permission: "read" },
      ],
      { "/metadata/schema.json": "view", "/app.py": "read", "/docs/a/b.md": "read", "/app.js": "none" },
    );
  });

  test("hiding the repository's history", () => {
    check(
      [
        { pattern: "**/*", permission: "read" },
        { pattern: "**/.git/**", permission: "none" },
      ],
      {
        "/.git": "none",
        "/.git/config": "none",
        "/sub/.git/HEAD": "none",
        "/.gitignore": "read",
        "/.github/x": "read",
      },
    );
  });
});

test("first design: write docs, read Python", () => {
  check(
    [
      { pattern: "/docs/**", permission: "write" },
      { pattern: "**/*.py", permission: "read" },
    ],
    { "/docs/a.md": "write", "/docs/a.py": "write", "/src/a.py": "read", "/src/a.c": "none" },
  );
});
