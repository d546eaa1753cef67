import { compileRules, getPreset, levelName, type Rule } from "@agentfense/permission";
import { describe, expect, test } from "vitest";
import { ProjectPolicyError, protectPolicyFile, withProjectPolicy } from "../../src/project/index.ts";

const path = "project/.agentfense.yaml";
const docs: Rule = { pattern: "/docs/**", permission: "write" };

describe("the caller wins, the policy fills in the rest", () => {
  test("without either, the rules are those of agent-safe", () => {
    expect(withProjectPolicy({}, undefined)).toEqual({ permissions: getPreset("agent-safe") });
  });

  test("a policy's rules follow its preset", () => {
    const policy = { path, preset: "read-only", permissions: [docs] };
    expect(withProjectPolicy({}, policy)).toEqual({ permissions: [...getPreset("read-only"), docs] });
  });

  test("a policy's rules without a preset are all there is", () => {
    expect(withProjectPolicy({}, { path, permissions: [docs] })).toEqual({ permissions: [docs] });
    expect(withProjectPolicy({}, { path, permissions: [] })).toEqual({ permissions: [] });
  });

  test("rules of the caller replace those of the policy, preset and all", () => {
    const policy = { path, preset: "full-access", permissions: [docs] };
    expect(withProjectPolicy({ preset: "view-only" }, policy)).toEqual({ permissions: getPreset("view-only") });
    expect(withProjectPolicy({ permissions: [] }, policy)).toEqual({ permissions: [] });
  });

  test("a policy without rules keeps the default", () => {
    expect(withProjectPolicy({}, { path, runtime: "docker" })).toEqual({
      runtime: "docker",
      permissions: getPreset("agent-safe"),
    });
  });

  test("variables and limits are taken name by name", () => {
    const policy = { path, env: { A: "policy", B: "policy" }, resources: { memoryBytes: 1, pidsLimit: 2 } };
    const given = { env: { B: "caller" }, resources: { pidsLimit: 3 }, runtime: "bwrap", sync: "manual" } as const;
    expect(withProjectPolicy(given, { ...policy, runtime: "docker" })).toEqual({
      env: { A: "policy", B: "caller" },
      resources: { memoryBytes: 1, pidsLimit: 3 },
      runtime: "bwrap",
      sync: "manual",
      permissions: getPreset("agent-safe"),
    });
  });
});

describe("a policy cannot open the network by itself", () => {
  test.each(["private", "host"] as const)("%s is refused unless the caller says something", (network) => {
    expect(() => withProjectPolicy({}, { path, network })).toThrow(ProjectPolicyError);
    expect(withProjectPolicy({ network }, { path, network }).network).toBe(network);
    expect(withProjectPolicy({ network: "none" }, { path, network }).network).toBe("none");
  });

  test("a list of hosts is refused unless the caller says filtered, or lists others", () => {
    const network = { allow: ["pypi.org"] };
    expect(() => withProjectPolicy({}, { path, network })).toThrow("asks for the network filtered");
    expect(withProjectPolicy({ network: "filtered" }, { path, network }).network).toBe(network);
    const own = { presets: ["npm"] };
    expect(withProjectPolicy({ network: own }, { path, network }).network).toBe(own);
    expect(withProjectPolicy({ network: "none" }, { path, network }).network).toBe("none");
  });

  test("none is taken", () => {
    expect(withProjectPolicy({}, { path, network: "none" }).network).toBe("none");
  });
});

describe("the policy file is never writable", () => {
  const highest = Number.MAX_SAFE_INTEGER;

  test.each<[what: string, rules: readonly Rule[], level: string]>([
    ["a preset that allows all", getPreset("full-access"), "read"],
    ["a rule for the file itself", [{ pattern: "/.agentfense.yaml", permission: "write", priority: 7 }], "read"],
    ["the highest priority", [{ pattern: "/.agentfense.yaml", permission: "write", priority: highest }], "read"],
    ["a glob of the highest priority", [{ pattern: "**/*", permission: "write", priority: highest }], "read"],
    ["a directory rule of the highest priority", [{ pattern: "/", permission: "write", priority: highest }], "read"],
    ["rules that list it", getPreset("view-only"), "view"],
    ["rules that hide it", [], "none"],
  ])("%s", (_what, rules, level) => {
    const kept = protectPolicyFile(rules);
    expect(levelName(compileRules(kept).decide("/.agentfense.yaml").level)).toBe(level);
    expect(kept.slice(0, rules.length)).toEqual(rules);
  });

  test("rules that do not allow it stay as they are", () => {
    expect(protectPolicyFile(getPreset("agent-safe"))).toBe(getPreset("agent-safe"));
  });

  test("nothing else is touched", () => {
    const policy = compileRules(protectPolicyFile(getPreset("full-access")));
    expect(levelName(policy.decide("/src/main.ts").level)).toBe("write");
  });
});
