import { once } from "node:events";
import { access, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { aWhile } from "../../../test/support/eventually.ts";
import { processesWith } from "../../../test/support/leftovers.ts";
import { agentfense, start } from "./run-cli.ts";
import { describeForBoth, instanceOf, isMountedBelow, type Places, places } from "./sandbox-places.ts";

const README = await readFile(join(import.meta.dirname, "../../../examples/project/README.md"), "utf8");

async function run({ surroundings }: Places, args: readonly string[], input?: string) {
  return await agentfense(["run", ...args], { ...surroundings, ...(input === undefined ? {} : { input }) });
}

describeForBoth("agentfense run", (as) => {
  test("stdout is the command's alone, and the codebase appears as the rules allow", async () => {
    const here = await places(as);
    expect(await run(here, ["project", "--", "cat", "README.md"])).toEqual({
      code: 0,
      stdout: README,
      stderr: "agentfense: no changes\n",
    });
    const hidden = await run(here, ["project", "--", "cat", ".env"]);
    expect(hidden).toMatchObject({ code: 1, stdout: "" });
    expect(hidden.stderr).toContain("No such file or directory");
    expect(await readdir(here.temporary)).toEqual([]);
  });

  test("without a directory it is the one we are in", async () => {
    const here = await places(as);
    const inside = { ...here, surroundings: { ...here.surroundings, cwd: join(here.cwd, "project") } };
    expect(await run(inside, ["--", "pwd; ls"])).toMatchObject({
      code: 0,
      stdout: "/workspace\nREADME.md\nconfig\ndocs\npackage.json\nsrc\n",
    });
  });

  test.each([
    ["its own code", "exit 3", 3],
    ["128 + n after signal n", "kill -9 $$", 137],
    ["127 when there is no such program", "no-such-program", 127],
  ])("ends with %s", async (_what, command, code) => {
    expect((await run(await places(as), ["project", "--", command])).code).toBe(code);
  });

  test("one word is a line for the shell, several are taken as they are", async () => {
    const here = await places(as);
    expect((await run(here, ["project", "--", "ls | sort -r | head -n 1"])).stdout).toBe("src\n");
    expect((await run(here, ["project", "--", "printf", "%s|", "a b", "$HOME", "--json"])).stdout).toBe(
      "a b|$HOME|--json|",
    );
  });

  test("ends with 124 when the time is up, with what was printed until then, and nothing lives on", async () => {
    const here = await places(as);
    const mark = `41${Date.now() % 1e6}.5`;
    const { code, stdout, stderr } = await run(here, [
      "--timeout",
      "3s",
      "project",
      "--",
      `echo begun; setsid sleep ${mark} & sleep ${mark}`,
    ]);
    expect({ code, stdout }).toEqual({ code: 124, stdout: "begun\n" });
    expect(stderr).toMatch(/^agentfense: the command was killed after \d+\.\d s \(--timeout\)$/m);
    expect(processesWith(mark)).toEqual([]);
  });

  test("lists the changes on stderr, then throws them away and says so", async () => {
    const here = await places(as);
    const change = "mkdir new; echo hello > new/file; rm README.md; echo >> package.json; ln -s a link";
    const { code, stdout, stderr } = await run(here, ["--preset", "full-access", "project", "--", change]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr.split("\n")).toEqual([
      "agentfense: 5 changes:",
      "  deleted   /README.md",
      "  added     /link (1 bytes)",
      "  added     /new/",
      expect.stringMatching(/^ {2}modified! \/package\.json \(\d+ bytes\)$/),
      "  added     /new/file (6 bytes)",
      "agentfense: they are thrown away; --delta DIR keeps them, --apply writes them back",
      "",
    ]);
    expect(await readFile(join(here.cwd, "project/README.md"), "utf8")).toBe(README);
    expect(await readdir(here.temporary)).toEqual([]);
  });

  test("a changed source is listed before 200 ignored files, which are counted; --all lists everything", async () => {
    const here = await places(as);
    const cwd = join(here.cwd, "project");
    const work =
      "mkdir node_modules; for i in $(seq 200); do echo > node_modules/$i; done; echo // >> src/events.js; echo '*' > src/.gitignore";
    await agentfense(["run", "--preset", "full-access", "--apply", ".", "--", "echo node_modules > .gitignore"], {
      ...here.surroundings,
      cwd,
    });
    const listed = await run(here, ["--preset", "full-access", "--delta", "kept", "project", "--", work]);
    expect(listed.stderr.split("\n").slice(0, 5)).toEqual([
      "agentfense: 203 changes:",
      "  added     /src/.gitignore (2 bytes)",
      expect.stringMatching(/^ {2}modified {2}\/src\/events\.js \(\d+ bytes\)$/),
      "  ignored   /node_modules (201 added)",
      expect.stringContaining("agentfense: they are kept in "),
    ]);
    const all = await run(here, ["--preset", "full-access", "--all", "project", "--", work]);
    expect(all.stderr).toContain("  added     /node_modules/200 (1 bytes)\n");
    expect(all.stderr.split("\n").length).toBeGreaterThan(203);

    const stat = await agentfense(["diff", "--stat", "--delta", "kept"], here.surroundings);
    expect(stat.stdout.split("\n").slice(-4)).toEqual([
      expect.stringMatching(/^M {2}\/src\/events\.js {2}\+1 -0$/),
      "I  /node_modules  (201 added)",
      "203 changes, +2 -0",
      "",
    ]);
    const text = await agentfense(["diff", "--delta", "kept"], here.surroundings);
    expect(text.stdout).toContain("Ignored: /node_modules  (201 added)\n");
    expect(text.stdout).not.toContain("/node_modules/200");
    const raw = await agentfense(["diff", "--raw", "--delta", "kept"], here.surroundings);
    expect(raw.stdout).toContain("diff --git a/node_modules/200 b/node_modules/200\n");
    // Folded is not left out.
    const applied = await agentfense(["apply", "--delta", "kept"], here.surroundings);
    expect(applied.stdout).toBe(
      "A  /src/.gitignore\nM  /src/events.js\nI  /node_modules  (201 added)\n203 changes applied\n",
    );
    expect(await readdir(join(cwd, "node_modules"))).toHaveLength(200);
  });

  test("--delta keeps the changes, and the next run with it goes on from there", async () => {
    const here = await places(as);
    const first = await run(here, ["--delta", "kept", "project", "--", "mkdir output; echo one > output/a"]);
    expect(first.stderr).toContain(`agentfense: they are kept in ${here.cwd}/kept`);
    expect(await readFile(join(here.cwd, "kept/tree/output/a"), "utf8")).toBe("one\n");
    expect((await run(here, ["--delta", "kept", "project", "--", "cat output/a"])).stdout).toBe("one\n");
    expect((await run(here, ["project", "--", "cat output/a"])).code).toBe(1);
  });

  test("--apply writes the changes back when the command succeeded, and says why not when it did not", async () => {
    const here = await places(as);
    const change = "mkdir output; echo one > output/a";
    const failed = await run(here, ["--apply", "project", "--", `${change}; exit 5`]);
    expect(failed.code).toBe(5);
    expect(failed.stderr).toContain("agentfense: not written back, because the command ended with 5");
    await expect(access(join(here.cwd, "project/output"))).rejects.toMatchObject({ code: "ENOENT" });

    const done = await run(here, ["--apply", "project", "--", change]);
    expect(done.code).toBe(0);
    expect(done.stderr).toContain(`agentfense: 2 changes written back to ${here.cwd}/project\n`);
    expect(done.stderr).not.toContain("thrown away");
    expect(await readFile(join(here.cwd, "project/output/a"), "utf8")).toBe("one\n");

    const always = await run(here, ["--apply=always", "--json", "project", "--", "echo two > output/a; exit 6"]);
    expect(always.code).toBe(6);
    expect(JSON.parse(always.stdout)).toMatchObject({
      changes: [{ kind: "modified", path: "/output/a" }],
      applied: [{ outcome: "applied", kind: "modified", path: "/output/a" }],
    });
    expect(await readFile(join(here.cwd, "project/output/a"), "utf8")).toBe("two\n");
    expect(await readdir(here.temporary)).toEqual([]);
  });

  test("--json prints one object and nothing else", async () => {
    const here = await places(as);
    const command = "echo out; echo err >&2; mkdir output; echo 12345 > output/a; exit 4";
    const { code, stdout, stderr } = await run(here, ["--json", "project", "--", command]);
    expect({ code, stderr }).toEqual({ code: 4, stderr: "" });
    expect(JSON.parse(stdout)).toEqual({
      exitCode: 4,
      timedOut: false,
      truncated: false,
      outOfMemory: false,
      durationMs: expect.any(Number),
      stdout: "out\n",
      stderr: "err\n",
      changes: [
        { kind: "added", path: "/output", type: "directory", size: 0, sensitive: false },
        { kind: "added", path: "/output/a", type: "file", size: 6, sensitive: false },
      ],
    });
    const killed = await run(here, ["--json", "--timeout", "500ms", "project", "--", "echo begun; sleep 30"]);
    expect(killed.code).toBe(124);
    expect(JSON.parse(killed.stdout)).toMatchObject({
      exitCode: 137,
      signal: "SIGKILL",
      timedOut: true,
      stdout: "begun\n",
    });
  });

  test("--env and --workdir reach the command, and nothing else of our environment does", async () => {
    const here = await places(as);
    const passed = {
      ...here,
      surroundings: { ...here.surroundings, env: { ...here.surroundings.env, PASSED: "on", KEPT: "x" } },
    };
    const args = ["--env", "GREETING=a b=c", "--env", "PASSED", "--workdir", "src", "project", "--"];
    const { stdout } = await run(passed, [...args, 'echo "$GREETING,$PASSED,$KEPT,$TMPDIR,$PWD"']);
    expect(stdout).toBe("a b=c,on,,,/workspace/src\n");
  });

  test("input from a pipe is passed on, however much of it is read", async () => {
    const here = await places(as);
    const input = "x".repeat(300_000);
    expect((await run(here, ["project", "--", "wc", "-c"], input)).stdout.trim()).toBe("300000");
    expect(await run(here, ["project", "--", "head -c 3"], input)).toMatchObject({ code: 0, stdout: "xxx" });
    expect(await run(here, ["project", "--", "cat"])).toMatchObject({ code: 0, stdout: "" });
  });

  test("much output arrives whole and in order", async () => {
    const { code, stdout } = await run(await places(as), ["project", "--", "seq 1000000"]);
    expect({ code, length: stdout.length, end: stdout.slice(-8) }).toEqual({
      code: 0,
      length: 6_888_896,
      end: "1000000\n",
    });
  });

  test("a working directory that is not there is our failure, not the command's: 125", async () => {
    const { code, stdout, stderr } = await run(await places(as), ["--workdir", "/nowhere", "project", "--", "true"]);
    expect({ code, stdout }).toEqual({ code: 125, stdout: "" });
    expect(stderr).toMatch(/^agentfense: .*working directory/m);
  });

  test("--disk bounds what it can write", async () => {
    const here = await places(as);
    const command = "head -c 1000000 /dev/zero > big";
    const { code, stderr } = await run(here, ["--preset", "full-access", "--disk", "64k", "project", "--", command]);
    expect(code).not.toBe(0);
    expect(stderr).toContain("Disk quota exceeded");
  });

  test("--memory: a hog is killed and reported, or it is said that the limit is weaker here", async () => {
    const here = await places(as);
    const hog = ["--memory", "64m", "project", "--", "head -c 300000000 /dev/zero | tail -c 250000000 >/dev/null"];
    const { code, stderr } = await run(here, hog);
    const report = JSON.parse((await agentfense(["doctor", "--json"], here.surroundings)).stdout) as {
      findings: { check: string; verdict: string }[];
    };
    const limited = report.findings.find(({ check }) => check === "limits")?.verdict === "ok";
    expect(code).not.toBe(0);
    expect(stderr).toMatch(
      limited ? /^agentfense: the command ran out of memory \(--memory\)$/m : /^agentfense: Memory /m,
    );
  });

  test("without an engine the runtime docker is our failure: 125, and the doctor is named", async () => {
    const here = await places(as);
    const env = { ...here.surroundings.env, DOCKER_HOST: "unix:///nowhere/docker.sock" };
    const args = ["run", "--runtime", "docker", "--image", "debian", "project", "--", "true"];
    const { code, stdout, stderr } = await agentfense(args, { ...here.surroundings, env });
    expect({ code, stdout }).toEqual({ code: 125, stdout: "" });
    expect(stderr).toContain("agentfense doctor");
    expect(await readdir(here.temporary)).toEqual([]);
  });

  for (const [signal, expected] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    test(`${signal} kills everything, leaves nothing and ends with ${expected}`, async () => {
      const { surroundings, temporary } = await places(as);
      const mark = `42${Date.now() % 1e6}.5`;
      const command = `trap '' INT TERM; setsid sleep ${mark} & echo ready; sleep ${mark}`;
      const child = start(["run", "project", "--", command], surroundings);
      const stderr = text(child.stderr!);
      await once(child.stdout!, "data");
      const instance = instanceOf(child.pid!);
      expect(instance).toBeDefined();
      expect(isMountedBelow(instance!)).toBe(true);
      expect(processesWith(mark)).not.toEqual([]);

      child.kill(signal);
      const [code] = await once(child, "exit");

      expect({ code, stderr: await stderr }).toEqual({ code: expected, stderr: "" });
      expect(processesWith(mark)).toEqual([]);
      expect(isMountedBelow(instance!)).toBe(false);
      await expect(access(instance!)).rejects.toMatchObject({ code: "ENOENT" });
      expect(await readdir(temporary)).toEqual([]);
    });
  }

  test("what a killed run leaves, the next one removes", async () => {
    const here = await places(as);
    const mark = `45${Date.now() % 1e6}.5`;
    const child = start(
      ["run", "project", "--", `setsid sleep ${mark} & echo ready; sleep ${mark}`],
      here.surroundings,
    );
    await once(child.stdout!, "data");
    const instance = instanceOf(child.pid!);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await readdir(here.temporary)).toHaveLength(1);

    expect((await run(here, ["project", "--", "true"])).code).toBe(0);
    expect(processesWith(mark)).toEqual([]);
    expect(isMountedBelow(instance!)).toBe(false);
    await expect(access(instance!)).rejects.toMatchObject({ code: "ENOENT" });
    expect(await readdir(here.temporary)).toEqual([]);
  });

  test("a reader that has seen enough ends the command, and nothing is left", async () => {
    const { surroundings, temporary } = await places(as);
    const mark = `endless${Date.now()}`;
    const child = start(["run", "project", "--", `yes ${mark}`], surroundings);
    await once(child.stdout!, "data");
    child.stdout!.destroy();
    const [code] = await once(child, "exit");
    expect(code).toBe(141);
    expect(processesWith(mark)).toEqual([]);
    expect(await readdir(temporary)).toEqual([]);
  });

  test("a reader that does not read holds the command, not the memory", async () => {
    const { surroundings } = await places(as);
    const child = start(["run", "project", "--", "yes"], surroundings);
    child.stderr!.resume();
    await once(child.stdout!, "readable");
    await aWhile(2000);
    const [, resident] = /VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${child.pid}/status`, "utf8")) ?? [];
    expect(Number(resident)).toBeLessThan(300_000);
    child.stdout!.resume();
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    expect(code).toBe(143);
  });
});
