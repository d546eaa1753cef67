import { execFileSync } from "node:child_process";
import { cp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { identityOf, reasonAgainst } from "../../../test/support/identity.ts";
import { keptDelta } from "./kept-delta.ts";
import { agentfense, scratch, startMount } from "./run-cli.ts";

describe("agentfense apply", () => {
  test("--dry-run tells, apply does and empties the delta, a second apply finds nothing", async () => {
    const { delta, project, surroundings, work } = await keptDelta();
    await work();
    const args = ["--delta", "kept", "project"];
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

  test("the rules that are named decide instead of the remembered ones; refused is exit code 1", async () => {
    const { project, surroundings, work } = await keptDelta();
    await work();
    const args = ["apply", "--json", "--preset", "agent-safe", "--delta", "kept"];
    const { code, stdout } = await agentfense(args, surroundings);
    const report = JSON.parse(stdout);
    expect(code).toBe(1);
    expect(report.changes.map(({ path, outcome, reason }: Record<string, string>) => [path, outcome, reason])).toEqual([
      ["/README.md", "refused", "level read"],
      ["/old.txt", "refused", "level read"],
      ["/src", "refused", "level read; so is all below"],
    ]);
    expect(await readdir(project)).toEqual([".env", "README.md", "old.txt"]);
  });

  test("the rules are those of the last run with the delta, and a refusal says which they were", async () => {
    const { surroundings, work } = await keptDelta();
    await work();
    await agentfense(["run", "--preset", "read-only", "--delta", "kept", "project", "--", "true"], surroundings);
    const { code, stdout, stderr } = await agentfense(
      ["apply", "--delta", "kept", "project", "README.md"],
      surroundings,
    );
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: "M  /README.md  (refused; level read)\n0 changes applied, 1 refused\n",
      stderr:
        "agentfense: the rules were those of the last run with this delta: preset read-only; --preset or --rules takes others\n",
    });
  });

  test("a delta is not applied to another directory than the one it was made over, nor continued there", async () => {
    const { cwd, delta, project, surroundings, work } = await keptDelta();
    await work();
    await cp(project, join(cwd, "other"), { recursive: true });
    const sentence = `agentfense: the delta ${delta} was made over ${project}, not over ${cwd}/other\n`;
    for (const args of [
      ["apply", "--preset", "full-access", "--delta", "kept", "other"],
      ["diff", "--delta", "kept", "other"],
      ["run", "--delta", "kept", "other", "--", "true"],
      ["mount", "--delta", "kept", "other", "view"],
    ]) {
      const { code, stdout, stderr } = await agentfense(args, surroundings);
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: "" });
      expect(stderr).toContain(sentence);
    }
    expect(await readdir(join(cwd, "other"))).toEqual([".env", "README.md", "old.txt"]);
  });

  test("a delta that does not tell needs DIR and rules; one whose record is damaged is not guessed about", async () => {
    const { delta, surroundings, work } = await keptDelta();
    await work();
    await writeFile(join(delta, "record.json"), "{}");
    const damaged = await agentfense(["apply", "--delta", "kept", "project"], surroundings);
    expect({ code: damaged.code, stdout: damaged.stdout }).toEqual({ code: 1, stdout: "" });
    expect(damaged.stderr).toContain("is not the record of a delta");
    await rm(join(delta, "record.json"));
    expect((await agentfense(["diff", "--delta", "kept"], surroundings)).stderr).toContain("DIR is missing");
    const nameless = await agentfense(["apply", "--delta", "kept", "project"], surroundings);
    expect({ code: nameless.code, stdout: nameless.stdout }).toEqual({ code: 2, stdout: "" });
    expect(nameless.stderr).toContain("does not tell its rules: give --preset or --rules");
  });

  test("what a sandbox sees and what its layer holds is without the record", async () => {
    const { delta, surroundings, view, work } = await keptDelta();
    expect(await readdir(view)).toEqual(["README.md", "old.txt"]);
    await work();
    expect((await readdir(delta)).sort()).toEqual(["record.json", "tree", "work"]);
    // Not in the programs of the host, of which there are very many, and which are shown as they are.
    const search = "find / -path /usr -prune -o -path /proc -prune -o -name record.json -print";
    const { stdout } = await agentfense(["run", "--delta", "kept", "project", "--", search], surroundings);
    expect(stdout).toBe("");
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
