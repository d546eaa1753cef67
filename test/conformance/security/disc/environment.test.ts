import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { compileRules, getPreset } from "@agentfense/permission";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { MAP, O, PROT } from "../../../support/constants.ts";
import { eventually } from "../../../support/eventually.ts";
import { treeState } from "../../../support/tree.ts";
import { looksAt } from "../attacks.ts";
import { ALL_CANARIES, CANARY, RULES } from "../codebase.ts";
import { expectOnly, outcomesOf } from "../outcomes.ts";
import { openTwins, withDirectory } from "../twins.ts";

describeAttack("DISC: tools, the process's own view, and caches", (arena) => {
  test("DISC-39 no tool prints a hidden name or a hidden byte", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const commands = [
      "echo * .* */* */.* .env*",
      "ls -aRl .",
      "ls -la .env .env.d; true",
      "find . -ls",
      "find . -name '.env*' -o -type p -o -type s; true",
      "grep -r . . ; true",
      "grep -ra CANARY-HIDDEN . ; true",
      "tar cf - . ; true",
      "cat .env work/.env src/.env.d/inner.txt; true",
      "cat $(find . -type f); true",
      "du -a .",
      "cp -a . work/copy; find work/copy; cat work/copy/*; true",
      "cd work && git -c init.defaultBranch=main init -q repo && cp -r ../src/* repo/ && cd repo && git add -A && git ls-files && git status --ignored",
      'for name in .e* .en? .[e]nv .env{,.d}; do echo "$name"; done',
    ];
    for (const command of commands) {
      const {
        status,
        stdout = "",
        stderr = "",
      } = await probe.call("run", "sh", ["-c", command], { cwd: there.mountPoint });
      expect(status, `${command}\n${stderr}`).not.toBeNull();
      expect(stdout + stderr, command).not.toContain(CANARY.hidden);
      // The command line itself names .env; what must not appear is any other trace of the entries.
      for (const name of [".env.d/", ".env.empty", ".env.exe", ".env.fifo", ".env.sock", "key.pem", "ring"]) {
        expect(stdout, command).not.toContain(name);
      }
    }
  });

  test("DISC-40 agent-safe hides .git itself and all in it, and not .gitignore", async () => {
    const { probe } = arena;
    const git = {
      HEAD: "ref: refs/heads/main\n",
      index: `DIRC ${CANARY.hidden}`,
      logs: { HEAD: CANARY.hidden },
      config: "",
    };
    const lower = {
      ".git": git,
      ".gitignore": "node_modules\n",
      ".gitattributes": "* text\n",
      vendor: { module: { ".git": "gitdir: ../../.git/modules/module\n", ".gitignore": "*\n", "index.js": "1\n" } },
      ".env.local": CANARY.hidden,
      secrets: { "a.txt": CANARY.hidden },
      output: {},
    };
    const workspace = await arena.open({ lower, rules: getPreset("agent-safe") });
    expect(await probe.names(workspace.mountPoint)).toEqual([".gitattributes", ".gitignore", "output", "vendor"]);
    expect(await probe.names(workspace.at("/vendor/module"))).toEqual([".gitignore", "index.js"]);
    const hidden = ["/.git", "/.git/HEAD", "/.git/logs/HEAD", "/vendor/module/.git", "/.env.local", "/secrets/a.txt"];
    expectOnly(
      await outcomesOf(
        probe,
        workspace,
        hidden.flatMap((path) => looksAt(workspace.at(path))),
      ),
      "ENOENT",
    );
    expect(await probe.errnoOf("mkdirat", workspace.at("/output/.git"))).toBe("EACCES");
    expect(await probe.errnoOf("writeFile", workspace.at("/output/result.txt"), "result")).toBe("OK");
    expect((await probe.call("scan", workspace.mountPoint, [CANARY.hidden])).found).toEqual([]);
  });

  test("DISC-57 the mount table shows a neutral source and no path of the host", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    await probe.text(there.at("/README.md"));
    for (const table of ["/proc/self/mountinfo", "/proc/self/mounts"]) {
      const lines = (await probe.text(table)).split("\n").filter((line) => line.includes(there.root));
      expect(lines, table).toHaveLength(1);
      expect(lines[0]?.replace(there.mountPoint, ""), table).not.toContain(there.root);
      expect(lines[0], table).not.toMatch(/lower|delta|upperdir|workdir/);
    }
    const line = (await probe.text("/proc/self/mountinfo")).split("\n").find((text) => text.includes(there.mountPoint));
    const [before = "", after = ""] = (line ?? "").split(" - ");
    expect(before.split(" ")[3], "the root of the mount").toBe("/");
    expect(after.split(" ")[1], "the source").toMatch(/^[a-z][a-z.-]*$/);
    const { stdout } = await probe.call("run", "df", ["-a", there.mountPoint]);
    expect(stdout?.replaceAll(there.mountPoint, "")).not.toContain(there.root);
  });

  test("DISC-58 getcwd, open descriptors and mappings show paths of the workspace only", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const { ret: fd } = await probe.call("openat", there.at("/README.md"), O.RDONLY);
    const { ret: own } = await probe.call("openat", there.at("/work/notes.txt"), O.RDWR);
    const { ret: mapping } = await probe.call("mmap", fd, 4096, PROT.READ, MAP.PRIVATE);
    await probe.call("peek", mapping, 1);
    await probe.call("chdir", there.at("/src/lib"));
    const cwd = (await probe.call("getcwd")).text;
    const links = await probe.batch([
      ["readlinkat", "/proc/self/cwd"],
      ["readlinkat", `/proc/self/fd/${fd}`],
      ["readlinkat", `/proc/self/fd/${own}`],
    ]);
    const maps = (await probe.text("/proc/self/maps")).split("\n").filter((line) => line.includes(there.root));
    const info = await probe.text(`/proc/self/fdinfo/${fd}`);
    await probe.batch([
      ["chdir", "/"],
      ["munmap", mapping, 4096],
      ["close", fd],
      ["close", own],
    ]);
    expect(cwd).toBe(there.at("/src/lib"));
    expect(links.map((answer) => answer.text)).toEqual(
      ["/src/lib", "/README.md", "/work/notes.txt"].map((path) => there.at(path)),
    );
    expect(maps).toHaveLength(1);
    expect(maps[0]?.trimEnd().endsWith(` ${there.at("/README.md")}`)).toBe(true);
    expect(info).not.toContain(there.root);
  });

  test("DISC-59 the decision is taken before the codebase is touched", async (context) => {
    const { probe } = arena;
    if (spawnSync("strace", ["--version"]).error !== undefined) context.skip("strace is not installed");
    const { there } = await openTwins(arena);
    await probe.call("list", there.at("/src"));
    const tracer = spawn("strace", ["-f", "-qq", "-s", "200", "-e", "trace=file", "-p", String(there.daemonPid)], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let trace = "";
    tracer.stderr.on("data", (chunk) => {
      trace += chunk;
    });
    try {
      // Lookups of a name that is merely absent do reach the disk; when one is in the trace, the tracer is at work.
      let tries = 0;
      await eventually(async () => {
        await probe.call("fstatat", there.at(`/src/merely-absent-${tries++}`));
        expect(trace).toContain("merely-absent");
      });
      await probe.batch(
        ["/src/.env", "/src/.env.d/inner.txt", "/work/.env", "/.env"].flatMap((path) => looksAt(there.at(path))),
      );
      await probe.call("fstatat", there.at("/src/merely-absent-at-the-end"));
      await eventually(() => expect(trace).toContain("at-the-end"));
    } finally {
      tracer.kill("SIGINT");
      await new Promise((resolve) => tracer.on("close", resolve));
    }
    expect(trace.split("\n").filter((line) => line.includes(".env"))).toEqual([]);
  });

  test("DISC-60 the policy function and the file system agree on every path, ancestors included", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const policy = compileRules(RULES);
    const paths = Object.keys(treeState(there.lower)).filter((path) => path !== "/");
    const directories = new Set(paths.map((path) => path.slice(0, path.lastIndexOf("/"))));
    const visible = (path: string): boolean =>
      policy.decide(path).level > 0 ||
      (directories.has(path) && paths.some((other) => other.startsWith(`${path}/`) && policy.decide(other).level > 0));
    const answers = await probe.errnos(paths.map((path) => ["fstatat", there.at(path)] as const));
    const found = Object.fromEntries(paths.map((path, index) => [path, answers[index]]));
    expect(found).toEqual(Object.fromEntries(paths.map((path) => [path, visible(path) ? "OK" : "ENOENT"])));
    expect(policy.decide("/src/.env.d/inner.txt").level).toBe(0);
  });

  test("DISC-62 no cache of the kernel outlives a change of the rules", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const open = [
      ...RULES.filter((rule) => rule.permission !== "none"),
      { pattern: "/work/late.txt", permission: "none" } as const,
    ];
    const paths = ["/src/.env", "/src/.env.d", "/src/.env.d/inner.txt", "/secrets/key.pem", "/work/sub/.env"];
    const look = () => probe.errnos(paths.flatMap((path) => looksAt(there.at(path)).slice(0, 5)));
    const all = (answers: readonly string[]) => new Set(answers);

    for (let round = 0; round < 3; round++) {
      expect(all(await look()), "negative entries are cached now").toEqual(new Set(["ENOENT"]));
      expect(await probe.names(there.at("/src"))).toEqual(["app.ts", "lib"]);
      await there.updateRules(open);
      expect(all(await look()), "seen at once").toEqual(new Set(["OK"]));
      expect(await probe.names(there.at("/src"))).toContain(".env");
      expect(await probe.names(there.at("/src/.env.d"))).toEqual(["deeper", "inner.txt"]);
      expect(await probe.text(there.at("/src/.env.d/inner.txt"))).toBe(CANARY.hidden);
      await there.updateRules(RULES);
    }
    expect(all(await look())).toEqual(new Set(["ENOENT"]));
    expect((await probe.call("scan", there.mountPoint, ALL_CANARIES)).found).toEqual([]);
  });

  test("DISC-62 a held directory and a working directory follow the new rules", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const before = await withDirectory(probe, there.at("/src"), async (src) => {
      await probe.call("chdir", there.at("/src/lib"));
      const seen = await probe.errnos([
        ["fstatat", { at: src, path: "app.ts" }],
        ["fstatat", "util.ts"],
        ["list", "."],
      ]);
      await there.updateRules([...RULES, { pattern: "/src/**", permission: "none", priority: 300 }]);
      const after = await probe.errnos([
        ["fstatat", { at: src, path: "app.ts" }],
        ["tryOpen", { at: src, path: "app.ts" }, O.RDONLY],
        ["fstatat", { at: src, path: "lib" }],
        ["fstatat", "util.ts"],
        ["tryOpen", "util.ts", O.RDONLY],
        ["mkdirat", "new"],
        ["fstatat", there.at("/src")],
        ["tryChdir", there.at("/src")],
      ]);
      const listed = await probe.batch([
        ["list", "."],
        ["listAt", src, 0],
      ]);
      await probe.call("chdir", "/");
      expect(listed.flatMap((answer) => answer.entries ?? []).map((entry) => entry.name)).not.toContain("util.ts");
      expect(listed.flatMap((answer) => answer.entries ?? []).map((entry) => entry.name)).not.toContain("app.ts");
      expect(after.filter((errno) => !["ENOENT", "ESTALE", "EACCES"].includes(errno))).toEqual([]);
      return seen;
    });
    expect(before).toEqual(["OK", "OK", "OK"]);
  });

  test("DISC-62 attributes follow the new rules", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    const mode = async (path: string) => ((await probe.call("fstatat", there.at(path))).stat?.mode ?? 0) & 0o777;
    expect((await mode("/README.md")) & 0o444).toBe(0o444);
    await there.updateRules([...RULES, { pattern: "/README.md", permission: "view" }]);
    expect((await mode("/README.md")) & 0o444).toBe(0);
    expect(await probe.errnoOf("tryOpen", there.at("/README.md"), O.RDONLY)).toBe("EACCES");
    await there.updateRules([...RULES, { pattern: "/README.md", permission: "write" }]);
    expect((await mode("/README.md")) & 0o600).toBe(0o600);
    expect(await probe.errnoOf("writeFile", there.at("/README.md"), "changed")).toBe("OK");
    await there.updateRules(RULES);
    expect(await probe.text(there.at("/README.md"))).toBe("changed");
    expect(await probe.errnoOf("tryOpen", there.at("/README.md"), O.WRONLY)).toBe("EACCES");
  });

  test("DISC-62 a change of the rules that is refused changes nothing", async () => {
    const { probe } = arena;
    const { there } = await openTwins(arena);
    await expect(there.updateRules([{ pattern: "", permission: "write" }])).rejects.toThrow();
    expect(await probe.text(there.at("/README.md"))).toBe("about this\n");
    expect(await probe.text(there.at("/src/.env"))).toBe("ENOENT");
    expect(readFileSync(`${there.lower}/src/.env`, "utf8")).toContain(CANARY.hidden);
  });
});
