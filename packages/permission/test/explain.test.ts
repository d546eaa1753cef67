import { expect, test } from "vitest";
import { compileRules } from "../src/index.ts";

test("explain names the deciding rule, then the losing ones in rank order and what each lost by", () => {
  const policy = compileRules([
    { pattern: "**/*", permission: "read" },
    { pattern: "/src/*.ts", permission: "view" },
    { pattern: "/src/main.ts", permission: "none", type: "file", priority: -1 },
    { pattern: "/src/", permission: "view" },
    { pattern: "/src/main.ts", permission: "write" },
    { pattern: "/other", permission: "none" },
    { pattern: "/src/ma*", permission: "view" },
  ]);
  const { candidates, ...outcome } = policy.explain("/src/main.ts");
  expect(outcome).toEqual({ path: "/src/main.ts", level: "write", rule: 4, reason: "rule 4 decides: write" });
  expect(candidates.map(({ rule, lostBy, reason }) => [rule, lostBy, reason])).toEqual([
    [4, undefined, "rule 4 decides: write"],
    [3, "type", "its type directory ranks below file of rule 4"],
    [1, "type", "its type glob ranks below file of rule 4"],
    [6, "type", "its type glob ranks below file of rule 4"],
    [0, "type", "its type glob ranks below file of rule 4"],
    [2, "priority", "its priority -1 is below 0 of rule 4"],
  ]);
});

test("a path below a hidden directory is explained by that directory", () => {
  const policy = compileRules([
    { pattern: "**/credentials*", permission: "none" },
    { pattern: "**/*", permission: "read" },
  ]);
  expect(policy.explain("/x/credentials/aws/key.json")).toEqual({
    path: "/x/credentials/aws/key.json",
    level: "none",
    rule: 0,
    reason: "hidden through ancestor /x/credentials by rule 0",
    candidates: [
      {
        rule: 0,
        pattern: "**/credentials*",
        permission: "none",
        type: "glob",
        priority: 0,
        specificity: 11,
        ancestor: "/x/credentials",
        reason: "hidden through ancestor /x/credentials by rule 0",
      },
      {
        rule: 1,
        pattern: "**/*",
        permission: "read",
        type: "glob",
        priority: 0,
        specificity: 0,
        lostBy: "specificity",
        reason: "it has less literal text (0) than rule 0 (11)",
      },
    ],
  });
});

test("a hidden directory that is outranked says so", () => {
  const policy = compileRules([
    { pattern: "/secrets", permission: "none" },
    { pattern: "/secrets/public.key", permission: "read" },
  ]);
  expect(policy.explain("/secrets/public.key").candidates[1]).toMatchObject({
    rule: 0,
    ancestor: "/secrets",
    lostBy: "specificity",
    reason: "would hide it through ancestor /secrets, but it has less literal text (7) than rule 1 (17)",
  });
});

test("ties and replaced rules are told apart", () => {
  const policy = compileRules([
    { pattern: "/a?", permission: "write" },
    { pattern: "/?a", permission: "view" },
    { pattern: "/[a]a", permission: "view" },
    { pattern: "/?a", permission: "view" },
    { pattern: "?a", permission: "view" },
  ]);
  expect(policy.explain("/aa").candidates.map(({ rule, lostBy }) => [rule, lostBy])).toEqual([
    [2, undefined],
    [3, "order"],
    [4, "order"],
    [0, "strictness"],
    [1, "replaced"],
  ]);
});

test("a path no rule matches is hidden for that reason", () => {
  expect(compileRules([{ pattern: "/a", permission: "read" }]).explain("/b")).toEqual({
    path: "/b",
    level: "none",
    rule: -1,
    reason: "hidden, because no rule matches",
    candidates: [],
  });
});
