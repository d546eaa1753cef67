// The samples of the owner's document "security model", in TypeScript: each runs with the result that the document states.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { type AuditEvent, extendPreset, type Rule, Sandbox } from "agentfense";
import { describe, expect, test } from "vitest";
import { HANG_MS } from "../support/eventually.ts";
import { setStage, type World } from "../support/scenes.ts";

const WORLDS: readonly World[] = ["embedded", "remote"];
const CLI = join(import.meta.dirname, "../../packages/agentfense/src/cli.ts");

const READ_ALL: Rule = { pattern: "**/*", permission: "read" };

describe.each(WORLDS)("the security model, %s", (world) => {
  const stage = setStage(world);

  async function open(files: Readonly<Record<string, string>>, permissions: readonly Rule[]) {
    return await Sandbox.fromLocal(stage.project(files), { ...stage.place, permissions });
  }

  test("none: not listed, not found, not even as a test", async () => {
    await using sandbox = await open({ ".env": "KEY=1\n", "app.py": "print()\n", "secrets/a": "a\n" }, [
      READ_ALL,
      { pattern: "**/.env*", permission: "none" },
      { pattern: "/secrets/**", permission: "none" },
    ]);
    const listing = await sandbox.run("ls -la /workspace/");
    expect(listing.stdout).toContain("app.py");
    expect(listing.stdout).not.toMatch(/\.env|secrets/);
    expect(await sandbox.run("cat /workspace/.env")).toMatchObject({
      exitCode: 1,
      stderr: "cat: /workspace/.env: No such file or directory\n",
    });
    expect(await sandbox.run('[ -f /workspace/.env ] && echo "exists"')).toMatchObject({ exitCode: 1, stdout: "" });
  });

  test("view: the structure without the content", async () => {
    await using sandbox = await open({ "metadata/schema.json": "{}".padEnd(1200), "metadata/config.yaml": "a: 1\n" }, [
      { pattern: "/metadata/**", permission: "view" },
    ]);
    expect((await sandbox.run("ls /workspace/metadata/")).stdout).toBe("config.yaml\nschema.json\n");
    expect((await sandbox.run("ls -lh /workspace/metadata/")).stdout).toContain("1.2K");
    expect(await sandbox.run("cat /workspace/metadata/schema.json")).toMatchObject({
      exitCode: 1,
      stderr: "cat: /workspace/metadata/schema.json: Permission denied\n",
    });
  });

  test("read: the content, and no change", async () => {
    await using sandbox = await open({ "app.py": "print('hi')\n", "docs/a.md": "# a\n" }, [
      { pattern: "**/*.py", permission: "read" },
      { pattern: "/docs/**", permission: "read" },
    ]);
    expect((await sandbox.run("cat /workspace/app.py")).stdout).toBe("print('hi')\n");
    expect(await sandbox.run('echo "malicious" >> /workspace/app.py')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^\/bin\/bash: .*\/workspace\/app\.py: Permission denied\n$/),
    });
  });

  test("write: where it is granted, and nowhere else", async () => {
    await using sandbox = await open({ "config.yaml": "a: 1\n", "output/.keep": "", "tmp/.keep": "" }, [
      READ_ALL,
      { pattern: "/output/**", permission: "write" },
      { pattern: "/tmp/**", permission: "write" },
    ]);
    expect(await sandbox.run('echo "analysis complete" > /workspace/output/result.txt')).toMatchObject({ exitCode: 0 });
    expect(await sandbox.run('echo "malicious" > /workspace/config.yaml')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("/workspace/config.yaml: Permission denied"),
    });
  });

  test("the highest priority decides, then the kind of pattern, then how specific it is", async () => {
    await using sandbox = await open({}, [
      READ_ALL,
      { pattern: "/secrets/**", permission: "none" },
      { pattern: "/secrets/public.key", permission: "read" },
    ]);
    const decided = await Promise.all(
      ["/app/main.py", "/secrets/private.key", "/secrets/public.key"].map(async (path) => {
        const { permission, deciding } = await sandbox.permissions.explain(path);
        return [permission, deciding?.rule.pattern];
      }),
    );
    expect(decided).toEqual([
      ["read", "**/*"],
      ["none", "/secrets/**"],
      ["read", "/secrets/public.key"],
    ]);
  });

  test("good practice: deny by default, allow by name", async () => {
    await using sandbox = await open({ "src/a.ts": "a\n", "internal/b": "b\n", "output/.keep": "" }, [
      { pattern: "**/*", permission: "none" },
      { pattern: "/src/**", permission: "read" },
      { pattern: "/output/**", permission: "write" },
    ]);
    expect((await sandbox.run("ls")).stdout).toBe("output\nsrc\n");
    expect(await sandbox.run("cat src/a.ts && echo x > output/x")).toMatchObject({ exitCode: 0, stdout: "a\n" });
  });

  test("good practice: secrets at a high priority, whatever else matches", async () => {
    const files = { ".env": "", "a.key": "", "deep/b.pem": "", "secrets/c": "", "src/a.ts": "a\n" };
    await using sandbox = await open(files, [
      READ_ALL,
      { pattern: "**/.env*", permission: "none", priority: 100 },
      { pattern: "/secrets/**", permission: "none", priority: 100 },
      { pattern: "**/*.key", permission: "none", priority: 100 },
      { pattern: "**/*.pem", permission: "none", priority: 100 },
      { pattern: "/secrets/c", permission: "read", priority: 50 },
    ]);
    expect((await sandbox.run("find . -type f")).stdout).toBe("./src/a.ts\n");
  });

  test("good practice: a preset as the start", async () => {
    const rules = extendPreset({ base: "agent-safe", additions: [{ pattern: "/logs/**", permission: "write" }] });
    await using sandbox = await open({ "logs/.keep": "", ".env": "K=1\n" }, rules);
    expect(await sandbox.run("echo x > logs/x && cat .env")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("No such file or directory"),
    });
  });

  test("good practice: no network unless it is needed", async () => {
    await using sandbox = await open({}, [READ_ALL]);
    expect(sandbox.info.network).toBe("none");
    expect((await sandbox.run("cat /proc/net/route | wc -l")).stdout.trim()).toBe("1");
  });

  test("good practice: limits hold", async () => {
    await using sandbox = await Sandbox.fromLocal(stage.project({}), {
      ...stage.place,
      resources: { memoryBytes: 512 * 1024 * 1024, pidsLimit: 100, cpuQuota: 50_000 },
    });
    const bomb = await sandbox.run("for i in $(seq 200); do sleep 30 & done; wait", { timeoutMs: 4_000 });
    expect(bomb.stderr).toMatch(/fork: retry|Resource temporarily unavailable/);
  });

  test("what happens is on record, as the document shows it", async () => {
    await using sandbox = await open({ "app.py": "print()\n", ".env": "K=1\n", "ro.txt": "x\n" }, [
      READ_ALL,
      { pattern: "**/.env*", permission: "none" },
    ]);
    await sandbox.run("cat /workspace/app.py");
    await sandbox.run("echo x > /workspace/ro.txt");
    const events: AuditEvent[] = [];
    for await (const event of sandbox.events({ follow: true, signal: AbortSignal.timeout(HANG_MS) })) {
      events.push(event);
      if (event.type === "permission_denied") break;
    }
    expect(events.find(({ type }) => type === "sandbox_created")).toMatchObject({
      level: "info",
      sandboxId: sandbox.id,
      codebaseId: sandbox.codebaseId,
      data: { permissions: [{ pattern: "**/*" }, { pattern: "**/.env*", permission: "none" }] },
    });
    expect(events.find(({ type }) => type === "command_executed")).toMatchObject({
      level: "info",
      data: { command: "cat /workspace/app.py", exit_code: 0, duration_ms: expect.any(Number) },
    });
    expect(events.at(-1)).toMatchObject({
      type: "permission_denied",
      level: "warn",
      data: { path: "/workspace/ro.txt", permission: "read" },
    });
  });

  test("pitfall: the history of .git is hidden by a rule", async () => {
    const files = { ".git/config": "[core]\n", "src/a.ts": "a\n" };
    await using leaking = await open(files, [READ_ALL]);
    await using closed = await open(files, [READ_ALL, { pattern: "**/.git/**", permission: "none" }]);
    expect((await closed.run("ls -A")).stdout).toBe("src\n");
    // A remote sandbox never had it: an upload leaves .git out.
    expect((await leaking.run("ls -A")).stdout).toBe(world === "embedded" ? ".git\nsrc\n" : "src\n");
  });

  test("pitfall: too much is writable", async () => {
    await using dangerous = await open({ "src/a.ts": "a\n" }, [{ pattern: "**/*", permission: "write" }]);
    await dangerous.run("echo changed > src/a.ts");
    expect(await dangerous.changes().toArray()).toMatchObject([{ kind: "modified", path: "/src/a.ts" }]);
    await using safe = await open({ "src/a.ts": "a\n", "output/.keep": "" }, [
      READ_ALL,
      { pattern: "/output/**", permission: "write" },
    ]);
    expect(await safe.run("echo changed > src/a.ts")).toMatchObject({ exitCode: 1 });
  });

  test("pitfall: a misspelt pattern is found by lint", () => {
    const directory = stage.project({
      "secrets/api.key": "k\n",
      "rules.yaml": '- { pattern: "**/*", permission: read }\n- { pattern: "/secret/**", permission: none }\n',
    });
    const { stdout } = spawnSync(
      process.execPath,
      [CLI, "policy", "lint", "--rules", join(directory, "rules.yaml"), directory],
      { encoding: "utf8" },
    );
    expect(stdout).toContain("/secret/**");
    expect(stdout).toContain("secrets/api.key");
  });
});
