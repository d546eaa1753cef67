import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agentfense } from "./run-cli.ts";
import { describeForBoth, places } from "./sandbox-places.ts";

const WORK = [
  "echo more >> README.md",
  "echo 'all: ; touch /tmp/ran' > Makefile",
  "mkdir .vscode && echo '{}' > .vscode/tasks.json",
  "echo '[http] sslCAInfo = evil.pem' > .gitconfig",
  "ln -s /etc/passwd link",
  "mkdir deep && touch deep/conftest.py deep/a.py",
].join("\n");

const MARKED = ["/.gitconfig", "/.vscode", "/.vscode/tasks.json", "/Makefile", "/deep/conftest.py", "/link"];

describeForBoth("what the host would run or trust unasked", (as) => {
  test("is marked in the lists of run, diff and apply, and held back by apply --hold-executables", async () => {
    const { cwd, surroundings } = await places(as);
    const cli = (...args: string[]) => agentfense(args, surroundings);
    const run = await cli("run", "--preset", "full-access", "--delta", "kept", "project", "--", WORK);
    const marked = [...run.stderr.matchAll(/^ {2}\w+! +(\S+)/gm)].map(([, path = ""]) => path.replace(/\/$/, ""));
    expect(marked.sort()).toEqual(MARKED);

    const stat = await cli("diff", "--delta", "kept", "--stat");
    const inDiff = [...stat.stdout.matchAll(/^A! (\S+)/gm)].map(([, path = ""]) => path.replace(/\/$/, ""));
    expect(inDiff.sort()).toEqual(MARKED);

    const held = await cli("apply", "--delta", "kept", "--hold-executables", "--json");
    expect(held.code).toBe(1);
    const { changes } = JSON.parse(held.stdout) as { changes: { path: string; outcome: string; sensitive: boolean }[] };
    const of = (outcome: string) => changes.filter((change) => change.outcome === outcome).map(({ path }) => path);
    expect(of("held").sort()).toEqual(MARKED.filter((path) => path !== "/.vscode/tasks.json"));
    expect(of("applied").sort()).toEqual(["/README.md", "/deep", "/deep/a.py"]);
    const project = join(cwd, "project");
    expect(await readdir(join(project, "deep"))).toEqual(["a.py"]);
    expect(await readdir(project)).not.toEqual(expect.arrayContaining(["Makefile"]));

    const again = await cli("apply", "--delta", "kept", "--hold-executables");
    expect(again.stdout).toContain("A! /Makefile  (held back: the host may run or trust it unasked)\n");
    expect(again.stdout).toMatch(/\n0 changes applied, 5 held back\n$/);
    expect(again.stderr).not.toContain("the rules were those");
    const rest = await cli("apply", "--delta", "kept");
    expect(rest.code).toBe(0);
    expect(await readFile(join(project, ".gitconfig"), "utf8")).toContain("sslCAInfo");
  });

  test("run --apply --hold-executables writes the rest back, keeps what it held, and says so by its exit code", async () => {
    const { cwd, surroundings } = await places(as);
    const options = ["--preset", "full-access", "--apply", "--hold-executables", "--delta", "kept"];
    const run = await agentfense(["run", ...options, "project", "--", WORK], surroundings);
    expect(run.code).toBe(123);
    expect(run.stderr).toContain("  held      /Makefile: held back: the host may run or trust it unasked\n");
    expect(await readFile(join(cwd, "project/README.md"), "utf8")).toMatch(/more\n$/);
    expect(await readFile(join(cwd, "kept/tree/Makefile"), "utf8")).toContain("touch");
  });
});
