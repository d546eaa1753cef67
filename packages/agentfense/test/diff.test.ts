import { execFileSync } from "node:child_process";
import { cp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { keptDelta } from "./kept-delta.ts";
import { agentfense, startMount } from "./run-cli.ts";

describe("agentfense diff", () => {
  test("shows the changes of a kept delta with control characters escaped", async () => {
    const { surroundings, work } = await keptDelta();
    await work();
    const { code, stdout, stderr } = await agentfense(["diff", "--delta", "kept", "project"], surroundings);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("--- a/README.md\n+++ b/README.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    expect(stdout).toContain("--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n");
    expect(stdout).toContain("+int main;\n+\\x1b[31mred\n");
    expect(stdout).not.toMatch(/[\u0000-\u0008\u000b-\u001f]/);
    expect(stdout).not.toContain("TOKEN");
  });

  test("--stat: one line a change, and a mark on what the host may run", async () => {
    const { surroundings, work } = await keptDelta();
    await work();
    const { code, stdout } = await agentfense(["diff", "--stat", "--delta", "kept", "project"], surroundings);
    expect({ code, lines: stdout.split("\n") }).toEqual({
      code: 0,
      lines: [
        "M  /README.md  +1 -1",
        "D  /old.txt  +0 -1",
        "A  /src/",
        "A  /src/\\x1b]0;title\\x07",
        "A! /src/.husky/",
        "A! /src/.husky/pre-commit  +1 -0",
        "A  /src/main.c  +2 -0",
        "7 changes, +4 -2",
        "",
      ],
    });
  });

  test("--json gives facts without the text; paths narrow it down", async () => {
    const { surroundings, work } = await keptDelta();
    await work();
    const { stdout } = await agentfense(["diff", "--json", "--delta", "kept", "project", "README.md"], surroundings);
    expect(JSON.parse(stdout)).toEqual([
      {
        kind: "modified",
        path: "/README.md",
        type: "file",
        size: 6,
        oldMode: 0o644,
        newMode: 0o644,
        shows: "lines",
        linesAdded: 1,
        linesRemoved: 1,
        sensitive: false,
      },
    ]);
  });

  test("without DIR it is the directory that the delta was made over", async () => {
    const { surroundings, work } = await keptDelta();
    await work();
    const named = await agentfense(["diff", "--stat", "--delta", "kept", "project"], surroundings);
    expect(await agentfense(["diff", "--stat", "--delta", "kept"], surroundings)).toEqual(named);
  });

  test("--raw is a patch of which git makes the same tree, removed directories and binary files included", async () => {
    const { cwd, project, surroundings, view, mount } = await keptDelta();
    await cp(join(import.meta.dirname, "../../../examples/project"), join(project, "old"), { recursive: true });
    await mount.end("SIGTERM");
    const again = await startMount(["--preset", "full-access", "--delta", "kept", "project", "view"], surroundings);
    await rm(join(view, "old"), { recursive: true });
    await writeFile(join(view, "bytes"), Buffer.from([0, 1, 2, 255]));
    await writeFile(join(view, "README.md"), "one\n2\n");
    await again.end("SIGTERM");
    const shown = await agentfense(["diff", "--stat", "--delta", "kept"], surroundings);
    expect(shown.stdout).toContain("D  /old/src/events.js  ");
    const { code, stdout, stderr } = await agentfense(["diff", "--raw", "--delta", "kept"], surroundings);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    await cp(project, join(cwd, "copy"), { recursive: true });
    execFileSync("git", ["apply", "-"], { cwd: join(cwd, "copy"), input: stdout, stdio: "pipe" });
    expect((await agentfense(["apply", "--delta", "kept"], surroundings)).code).toBe(0);
    execFileSync("diff", ["-r", "--no-dereference", "copy", "project"], { cwd, stdio: "pipe" });
    expect(await readdir(project)).toEqual([".env", "README.md", "bytes", "old.txt"]);
  });

  test("works while the mount is alive", async () => {
    const { surroundings, view } = await keptDelta();
    await writeFile(join(view, "README.md"), "live\n");
    const { code, stdout } = await agentfense(["diff", "--stat", "--delta", "kept", "project"], surroundings);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "M  /README.md  +1 -2\n1 change, +1 -2\n" });
  });

  test("what is missing or wrong is said, exit code 2", async () => {
    const { surroundings, work } = await keptDelta();
    await work();
    const complaints: [string[], string][] = [
      [["project"], "--delta DELTA is needed"],
      [["--delta", "project", "kept"], "there is no delta in"],
      [["--delta", "nowhere", "project"], "--delta does not exist: nowhere"],
      [["--delta", "kept", "project", "none.txt"], "the delta changes nothing at none.txt"],
      [["--delta", "kept", "project", "../x"], "a path of the workspace has no ..: ../x"],
      [["--delta", "kept", "."], "must not be inside one another"],
      [["--delta", "kept", "--raw", "--stat", "project"], "give one of --stat, --raw"],
    ];
    for (const [args, message] of complaints) {
      const { code, stdout, stderr } = await agentfense(["diff", ...args], surroundings);
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: "" });
      expect(stderr).toContain(message);
    }
  });
});
