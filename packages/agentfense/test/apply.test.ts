import { execFileSync } from "node:child_process";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { identityOf, reasonAgainst } from "../../../test/support/identity.ts";
import { keptDelta } from "./kept-delta.ts";
import { agentfense, scratch, startMount } from "./run-cli.ts";

describe("agentfense apply", () => {
  test("--dry-run tells, apply does and empties the delta, a second apply finds nothing", async () => {
    const { delta, project, surroundings, work } = await keptDelta();
    await work();
    const args = ["--preset", "development", "--delta", "kept", "project"];
    const lines = [
      "M  /README.md",
      "D  /old.txt",
      "A  /src/",
      "A  /src/\\x1b]0;title\\x07",
      "A! /src/.husky/  (the host may run or trust this unasked)",
      "A! /src/.husky/pre-commit  (the host may run or trust this unasked)",
      "A  /src/main.c",
    ];
    const rehearsal = await agentfense(["apply", "--dry-run", ...args], surroundings);
    expect(rehearsal).toEqual({ code: 0, stdout: `${lines.join("\n")}\n7 changes would be applied\n`, stderr: "" });
    expect(await readdir(project)).toEqual([".env", "README.md", "old.txt"]);

    const applied = await agentfense(["apply", ...args], surroundings);
    expect(applied).toEqual({ code: 0, stdout: `${lines.join("\n")}\n7 changes applied\n`, stderr: "" });
    expect(await readdir(project)).toEqual([".env", "README.md", "src"]);
    expect(await readFile(join(project, "README.md"), "utf8")).toBe("one\n2\n");
    expect(await readdir(join(delta, "tree"))).toEqual([]);

    expect(await agentfense(["apply", ...args], surroundings)).toEqual({ code: 0, stdout: "no changes\n", stderr: "" });
  });

  test("the rules decide again, agent-safe unless told otherwise; refused is exit code 1", async () => {
    const { project, surroundings, work } = await keptDelta();
    await work();
    const { code, stdout } = await agentfense(["apply", "--json", "--delta", "kept", "project"], surroundings);
    const report = JSON.parse(stdout);
    expect(code).toBe(1);
    expect(report.changes.map(({ path, outcome, reason }: Record<string, string>) => [path, outcome, reason])).toEqual([
      ["/README.md", "refused", "level read"],
      ["/old.txt", "refused", "level read"],
      ["/src", "refused", "level read; so is all below"],
    ]);
    expect(await readdir(project)).toEqual([".env", "README.md", "old.txt"]);
  });

  test("only the paths that are named", async () => {
    const { delta, project, surroundings, work } = await keptDelta();
    await work();
    const args = ["apply", "--preset", "full-access", "--delta", "kept", "project", "/old.txt", "src/main.c"];
    const { code, stdout } = await agentfense(args, surroundings);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "D  /old.txt\nA  /src/\nA  /src/main.c\n3 changes applied\n" });
    expect(await readdir(project)).toEqual([".env", "README.md", "src"]);
    expect(await readdir(join(project, "src"))).toEqual(["main.c"]);
    expect((await readdir(join(delta, "tree"))).sort()).toEqual(["README.md", "src"]);
  });

  test("a delta in use is exit code 1 and says what to do", async () => {
    const { delta, surroundings } = await keptDelta();
    expect(await agentfense(["apply", "--delta", "kept", "project"], surroundings)).toEqual({
      code: 1,
      stdout: "",
      stderr: `agentfense: the delta ${delta} is in use: unmount the workspace first\n`,
    });
  });

  test("says when the file in DIR had changed meanwhile", async () => {
    const { project, surroundings, work } = await keptDelta();
    await work();
    await writeFile(join(project, "README.md"), "host\n");
    const args = ["apply", "--preset", "full-access", "--delta", "kept", "project", "README.md"];
    expect((await agentfense(args, surroundings)).stdout).toBe(
      "M  /README.md  (the file in DIR was newer than the sandbox's copy)\n1 change applied\n",
    );
  });

  const reason = reasonAgainst("user");
  test.skipIf(reason !== undefined)(
    `as an ordinary user, modes in the way or not${reason ? ` (${reason})` : ""}`,
    async () => {
      const identity = identityOf("user");
      const cwd = await scratch();
      execFileSync("chown", [`${identity.uid}:${identity.gid}`, cwd]);
      const shell = (script: string) => execFileSync("sh", ["-ec", script], { cwd, ...identity, stdio: "pipe" });
      shell("mkdir project view; echo 1 > project/a; mkdir project/d; echo 1 > project/d/x; chmod 755 .");
      const mount = await startMount(["--preset", "full-access", "--delta", "kept", "project", "view"], {
        cwd,
        identity,
      });
      shell(
        "cd view; echo 2 > a; chmod 200 a; rm d/x; mkdir shut; echo 3 > shut/y; chmod 500 shut; chmod 4755 shut/y || true",
      );
      await mount.end("SIGTERM");
      const { code, stdout, stderr } = await agentfense(
        ["apply", "--preset", "full-access", "--delta", "kept", "project"],
        {
          cwd,
          identity,
        },
      );
      expect({ code, stdout, stderr }).toEqual({
        code: 0,
        stdout: "M  /a\nD  /d/x\nA  /shut/\nA  /shut/y\n4 changes applied\n",
        stderr: "",
      });
      const modes = ["a", "shut", "shut/y"].map(async (path) => (await stat(join(cwd, "project", path))).mode & 0o7777);
      expect(await Promise.all(modes)).toEqual([0o200, 0o500, 0o755]);
      expect(await readdir(join(cwd, "kept/tree"))).toEqual([]);
    },
  );
});
