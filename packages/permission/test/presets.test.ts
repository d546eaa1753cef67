import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  compileRules,
  extendPreset,
  getPreset,
  levelName,
  listPresets,
  PresetError,
  type Rule,
  RuleError,
  registerPreset,
} from "../src/index.ts";

const NAMES = ["agent-safe", "read-only", "full-access", "development", "view-only"];

function levelIn(rules: readonly Rule[], path: string): string {
  return levelName(compileRules(rules).decide(path).level);
}

const SECRETS = [
  "/.env",
  "/app/.env.production",
  "/.env.d/x",
  "/secrets",
  "/secrets/a/b",
  "/app/secrets/token",
  "/server.key",
  "/docs/.tls/server.pem",
  "/a.p12",
  "/a.pfx",
  "/id_rsa",
  "/home/id_ed25519.bak",
  "/credentials.json",
  "/credentials/aws.json",
  "/.npmrc",
  "/.pypirc",
  "/.netrc",
  "/.aws/config",
  "/.ssh",
  "/.ssh/known_hosts",
  "/.gnupg/x",
  "/.docker/config.json",
  "/.kube/config",
  "/infra/prod.tfstate.backup",
  "/output/.env",
  "/tmp/x/server.key",
];

describe("built-in presets", () => {
  test("are those of the documents, agent-safe first", () => {
    expect(
      listPresets()
        .filter((preset) => preset.builtIn)
        .map(({ name }) => name),
    ).toEqual(NAMES);
  });

  test("agent-safe reads all, writes /output and /tmp, hides secrets and the repository's history", () => {
    const rules = getPreset("agent-safe");
    const outcomes = {
      "/": "read",
      "/src/main.ts": "read",
      "/.gitignore": "read",
      "/.github/workflows/ci.yml": "read",
      "/docs/.config": "read",
      "/.docker/Dockerfile": "read",
      "/output": "write",
      "/output/a/b": "write",
      "/tmp/x": "write",
      "/src/tmp/x": "read",
      "/.git": "none",
      "/.git/HEAD": "none",
      "/vendor/lib/.git/config": "none",
    };
    expect(Object.fromEntries(Object.keys(outcomes).map((path) => [path, levelIn(rules, path)]))).toEqual(outcomes);
    expect(SECRETS.filter((path) => levelIn(rules, path) !== "none")).toEqual([]);
  });

  test("development writes all but the same secrets, and of a repository what a commit changes", () => {
    const rules = getPreset("development");
    const outcomes = {
      "/": "write",
      "/src/main.ts": "write",
      "/.gitignore": "write",
      "/.git": "read",
      "/.git/index": "write",
      "/.git/index.lock": "write",
      "/.git/HEAD": "write",
      "/.git/COMMIT_EDITMSG": "write",
      "/.git/objects/pack/tmp_pack_a": "write",
      "/.git/refs/heads/credentials-fix": "write",
      "/.git/logs/refs/heads/server.key": "write",
      "/.git/hooks": "read",
      "/.git/hooks/pre-commit": "read",
      "/.git/info/attributes": "read",
      "/.git/info/refs": "write",
      "/.git/commondir": "read",
      "/.git/config": "none",
      "/.git/config.lock": "none",
      "/.git/config.worktree": "none",
      "/.git/modules/lib/config": "none",
      "/.git/modules/lib/hooks/pre-commit": "read",
      "/.git/modules/refs/index": "read",
      "/new/.git": "read",
      "/new/.git/config": "none",
      "/vendor/lib/.git/HEAD": "write",
      "/secrets/.git/refs/heads/main": "none",
      "/secrets/.git/objects/ab/cd": "none",
    };
    expect(Object.fromEntries(Object.keys(outcomes).map((path) => [path, levelIn(rules, path)]))).toEqual(outcomes);
    expect(SECRETS.filter((path) => levelIn(rules, path) !== "none")).toEqual([]);
    const hidden = (name: string) =>
      getPreset(name).filter(({ permission, pattern }) => permission === "none" && !pattern.includes("/.git/"));
    expect(hidden("agent-safe")).toEqual(hidden("development"));
  });

  test.each([
    ["read-only", "read"],
    ["full-access", "write"],
    ["view-only", "view"],
  ])("%s is %s everywhere, the root included", (name, level) => {
    const { root } = compileRules(getPreset(name));
    expect([levelName(root.level), root.uniform]).toEqual([level, true]);
  });

  test("secrets have priority 100", () => {
    for (const name of NAMES) {
      for (const rule of getPreset(name))
        expect([name, rule.permission === "none"]).toEqual([name, rule.priority === 100]);
    }
  });

  test("the JSON file holds plain rules that any language can read", () => {
    const file = JSON.parse(readFileSync(new URL("../src/presets.json", import.meta.url), "utf8"));
    expect(Object.keys(file)).toEqual(NAMES);
    for (const name of NAMES) expect(file[name].rules).toEqual(getPreset(name));
  });

  test("cannot be changed by who gets them", () => {
    expect(() => (getPreset("agent-safe") as Rule[]).push({ pattern: "/x", permission: "write" })).toThrow(TypeError);
    expect(() => Object.assign(getPreset("agent-safe")[0]!, { permission: "write" })).toThrow(TypeError);
  });
});

describe("an unknown preset", () => {
  test.each(["agent_safe", "", "__proto__", "toString"])("%j is refused, and the known ones are named", (name) => {
    expect(() => getPreset(name)).toThrow(PresetError);
    expect(() => getPreset(name)).toThrow(/known: agent-safe, read-only, full-access, development, view-only/);
    expect(() => extendPreset({ base: name })).toThrow(PresetError);
  });
});

describe("extendPreset", () => {
  test("additions compete as usual, so secrets stay hidden", () => {
    const rules = extendPreset({ base: "agent-safe", additions: [{ pattern: "/logs/**", permission: "write" }] });
    expect([levelIn(rules, "/logs/a"), levelIn(rules, "/logs/.env")]).toEqual(["write", "none"]);
    expect(rules.slice(0, -1)).toEqual(getPreset("agent-safe"));
  });

  test("overrides win over everything, also over additions with a priority", () => {
    const rules = extendPreset({
      base: "agent-safe",
      additions: [{ pattern: "/a/**", permission: "write", priority: 500 }],
      overrides: [
        { pattern: "**/*", permission: "view" },
        { pattern: "/.env", permission: "read", priority: 7 },
      ],
    });
    expect(rules.slice(-2).map(({ priority }) => priority)).toEqual([501, 502]);
    expect(["/a/x", "/.env", "/.git/HEAD"].map((path) => levelIn(rules, path))).toEqual(["view", "read", "view"]);
  });

  test("refuses malformed rules and a priority nothing can be above", () => {
    expect(() => extendPreset({ base: "read-only", additions: [{ pattern: "", permission: "read" }] })).toThrow(
      RuleError,
    );
    expect(() =>
      extendPreset({
        base: "read-only",
        additions: [{ pattern: "/a", permission: "read", priority: Number.MAX_SAFE_INTEGER }],
        overrides: [{ pattern: "/a", permission: "write" }],
      }),
    ).toThrow(RuleError);
  });
});

describe("registerPreset", () => {
  test("adds a preset, and may change what it added", () => {
    registerPreset("mine", [{ pattern: "**/*", permission: "read" }], "all of it");
    registerPreset("mine", [{ pattern: "**/*", permission: "view" }], "names");
    expect(getPreset("mine")).toEqual([{ pattern: "**/*", permission: "view" }]);
    expect(listPresets()).toContainEqual({ name: "mine", description: "names", builtIn: false });
  });

  test("never changes a built-in one", () => {
    expect(() => registerPreset("agent-safe", [])).toThrow(/built in/);
  });

  test("refuses bad names and bad rules", () => {
    for (const name of ["", "a b", "../x", "-x", "x".repeat(65)]) {
      expect(() => registerPreset(name, [])).toThrow(PresetError);
    }
    expect(() => registerPreset("broken", [{ pattern: "..", permission: "read" }])).toThrow(RuleError);
    expect(() => getPreset("broken")).toThrow(PresetError);
  });
});
