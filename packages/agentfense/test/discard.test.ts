import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { keptDelta } from "./kept-delta.ts";
import { agentfense } from "./run-cli.ts";

describe("agentfense discard", () => {
  test("throws away what is named, then everything", async () => {
    const { delta, surroundings, work } = await keptDelta();
    await work();
    const some = await agentfense(["discard", "--delta", "kept", "/README.md", "src"], surroundings);
    expect(some).toEqual({
      code: 0,
      stdout: [
        "M  /README.md",
        "A  /src/",
        "A  /src/\\x1b]0;title\\x07",
        "A  /src/.husky/",
        "A  /src/main.c",
        "A  /src/.husky/pre-commit",
        "6 changes discarded",
        "",
      ].join("\n"),
      stderr: "",
    });
    expect((await agentfense(["diff", "--stat", "--delta", "kept", "project"], surroundings)).stdout).toBe(
      "D  /old.txt  +0 -1\n1 change, +0 -1\n",
    );
    const all = await agentfense(["discard", "--json", "--delta", "kept", "--all"], surroundings);
    expect(JSON.parse(all.stdout)).toEqual({
      discarded: [{ kind: "deleted", path: "/old.txt", type: "file", size: 4, sensitive: false }],
      failed: [],
    });
    expect((await agentfense(["discard", "--delta", "kept", "--all"], surroundings)).stdout).toBe(
      "0 changes discarded\n",
    );
    expect(await readdir(join(delta, "tree"))).toEqual([]);
  });

  test("needs --all or paths, and a change at each", async () => {
    const { delta, surroundings, work } = await keptDelta();
    const inUse = await agentfense(["discard", "--delta", "kept", "--all"], surroundings);
    expect({ code: inUse.code, stderr: inUse.stderr }).toEqual({
      code: 1,
      stderr: `agentfense: the delta ${delta} is in use: unmount the workspace first\n`,
    });
    await work();
    for (const [args, message] of [
      [[], "--all or one or more PATHs"],
      [["--all", "README.md"], "--all or one or more PATHs"],
      [["README.md", "none"], "the delta changes nothing at none"],
    ] as [string[], string][]) {
      const { code, stderr } = await agentfense(["discard", "--delta", "kept", ...args], surroundings);
      expect(code).toBe(2);
      expect(stderr).toContain(message);
    }
    expect(await readdir(join(delta, "tree"))).toContain("README.md");
  });
});
