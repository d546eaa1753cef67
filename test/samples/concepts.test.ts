// The samples of the owner's document "core concepts", in TypeScript: each runs with the result that the document states.

import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { extendPreset, registerPreset, Sandbox } from "agentfense";
import { afterAll, describe, expect, test } from "vitest";
import { setStage, type World } from "../support/scenes.ts";

const WORLDS: readonly World[] = ["embedded", "remote"];

const SECRETS = { "secrets/private.key": "private\n", "secrets/public.key": "public\n", "app/main.py": "print()\n" };

describe.each(WORLDS)("core concepts, %s", (world) => {
  const stage = setStage(world);

  test("a codebase is created, filled, listed, read and deleted", async () => {
    const { client } = stage;
    const codebase = await client.createCodebase({ name: "my-app-v1.0", ownerId: "team_123" });
    await client.uploadFile(codebase.id, "app.py", "print('v1.0')");
    await client.uploadFile(codebase.id, "config.yaml", "version: 1.0");

    const files = await client.listFiles(codebase.id, { path: "/", recursive: true }).toArray();
    expect(files.map(({ path, size }) => `${path} (${size} bytes)`)).toEqual([
      "/app.py (13 bytes)",
      "/config.yaml (12 bytes)",
    ]);
    const content = await client.downloadFile(codebase.id, "app.py");
    expect(new TextDecoder().decode(content)).toBe("print('v1.0')");

    await client.deleteCodebase(codebase.id);
    await expect(client.getCodebase(codebase.id)).rejects.toMatchObject({ name: "CodebaseNotFoundError" });
  });

  test("the high-level API makes and deletes the codebase by itself", async () => {
    let codebaseId: string;
    {
      await using sandbox = await Sandbox.fromLocal(stage.project({ "a.txt": "a\n" }), stage.place);
      const result = await sandbox.run("ls /workspace");
      expect(result.stdout).toBe("a.txt\n");
      codebaseId = sandbox.codebaseId;
    }
    await expect(stage.client.getCodebase(codebaseId)).rejects.toMatchObject({ name: "CodebaseNotFoundError" });
  });

  test("resources are limited", async () => {
    await using sandbox = await Sandbox.fromLocal(stage.project({ "heavy_task.py": "print(sum(range(10)))\n" }), {
      ...stage.place,
      resources: { memoryBytes: 512 * 1024 * 1024, cpuQuota: 50_000, pidsLimit: 100 },
    });
    const result = await sandbox.run("python3 heavy_task.py");
    expect(result).toMatchObject({ exitCode: 0, stdout: "45\n" });
    expect(sandbox.info.resources).toMatchObject({ memoryBytes: 536_870_912, cpuQuota: 50_000, pidsLimit: 100 });
  });

  test("a sandbox's life by hand", async () => {
    const { client } = stage;
    const codebase = await client.createCodebase({ name: "life", ownerId: "me" });
    await client.uploadFile(codebase.id, "a.txt", "a\n");
    const sandbox = await client.createSandbox({
      codebaseId: codebase.id,
      permissions: [{ pattern: "**/*", permission: "read" }],
    });
    expect(sandbox.status).toBe("pending");
    expect((await client.startSandbox(sandbox.id)).status).toBe("running");
    const result = await client.exec(sandbox.id, "ls /workspace");
    expect(result.stdout).toBe("a.txt\n");
    expect((await client.stopSandbox(sandbox.id)).status).toBe("stopped");
    await client.destroySandbox(sandbox.id);
    await expect(client.getSandbox(sandbox.id)).rejects.toMatchObject({ name: "SandboxNotFoundError" });
    await client.deleteCodebase(codebase.id);
  });

  test("a more specific rule wins", async () => {
    await using sandbox = await Sandbox.fromLocal(stage.project(SECRETS), {
      ...stage.place,
      permissions: [
        { pattern: "**/*", permission: "read" },
        { pattern: "/secrets/**", permission: "none" },
        { pattern: "/secrets/public.key", permission: "read" },
      ],
    });
    const levelOf = async (path: string) => (await sandbox.permissions.explain(path)).permission;
    expect(await levelOf("/secrets/private.key")).toBe("none");
    expect(await levelOf("/secrets/public.key")).toBe("read");
    expect(await levelOf("/app/main.py")).toBe("read");
    expect((await sandbox.run("find . -type f | sort")).stdout).toBe("./app/main.py\n./secrets/public.key\n");
  });

  test("rules are put together", async () => {
    const files = { ...SECRETS, "README.md": "read me\n", ".env": "KEY=1\n", "output/.keep": "" };
    await using sandbox = await Sandbox.fromLocal(stage.project(files), {
      ...stage.place,
      permissions: [
        { pattern: "**/*", permission: "read", priority: 0 },
        { pattern: "/output/**", permission: "write", priority: 10 },
        { pattern: "**/.env*", permission: "none", priority: 100 },
        { pattern: "/secrets/**", permission: "none", priority: 100 },
        { pattern: "**/*.key", permission: "none", priority: 100 },
        { pattern: "/secrets/public.key", permission: "read", priority: 200 },
      ],
    });
    expect(await sandbox.run("cat /workspace/README.md")).toMatchObject({ exitCode: 0, stdout: "read me\n" });
    expect(await sandbox.run("echo result > /workspace/output/log.txt")).toMatchObject({ exitCode: 0 });
    expect((await sandbox.run("ls /workspace/secrets/")).stdout).toBe("public.key\n");
    expect((await sandbox.run("cat /workspace/secrets/public.key")).stdout).toBe("public\n");
  });

  test("without a session each command has a new shell, with one the state stays", async () => {
    await using sandbox = await Sandbox.fromLocal(stage.project({ "src/a.txt": "a\n" }), stage.place);
    await sandbox.run("cd /workspace/src");
    expect((await sandbox.run("pwd")).stdout).toBe("/workspace\n");

    await using session = await sandbox.session();
    await session.exec("cd /workspace/src");
    expect((await session.exec("pwd")).stdout).toBe("/workspace/src\n");
  });

  test("several steps in one session", async () => {
    const directory = stage.project({
      "requirements.txt": "# nothing that is not there\n",
      "tests/test_app.py":
        "import os, unittest\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(os.environ['DEBUG'], '1')\n",
    });
    cpSync(await preparedVenv(), directory, { recursive: true, verbatimSymlinks: true });
    await using sandbox = await Sandbox.fromLocal(directory, stage.place);
    await using session = await sandbox.session();
    await session.exec("cd /workspace");
    await session.exec("export DEBUG=1");
    await session.exec("source venv/bin/activate");
    expect(await session.exec("pip install -r requirements.txt")).toMatchObject({ exitCode: 0 });
    expect((await session.exec("command -v python")).stdout).toBe("/workspace/venv/bin/python\n");
    expect(await session.exec("python -m unittest discover tests/")).toMatchObject({ exitCode: 0 });
  });

  test("the low-level session API", async () => {
    await using sandbox = await Sandbox.fromLocal(stage.project({ "a.txt": "a\n" }), stage.place);
    const { client } = sandbox;
    const session = await client.createSession(sandbox.id, {
      shell: "/bin/bash",
      env: { PYTHONPATH: "/workspace/lib" },
    });
    expect(session).toMatchObject({ sandboxId: sandbox.id, status: "active" });
    await client.sessionExec(session.id, "cd /workspace");
    expect((await client.sessionExec(session.id, "ls; echo $PYTHONPATH")).stdout).toBe("a.txt\n/workspace/lib\n");
    await client.closeSession(session.id);
    expect(await client.listSessions(sandbox.id)).toEqual([]);
  });

  test("a preset is used", async () => {
    await using sandbox = await Sandbox.fromLocal(stage.project({ "a.txt": "a\n", ".env": "K=1\n" }), {
      ...stage.place,
      preset: "agent-safe",
    });
    expect((await sandbox.run("ls -A")).stdout).toBe("a.txt\n");
  });

  test("a preset is extended", async () => {
    const rules = extendPreset({
      base: "agent-safe",
      additions: [{ pattern: "/logs/**", permission: "write" }],
      overrides: [{ pattern: "**/.git/**", permission: "read" }],
    });
    await using sandbox = await Sandbox.fromLocal(stage.project({ "logs/.keep": "" }), {
      ...stage.place,
      permissions: rules,
    });
    expect(await sandbox.run("echo log > /workspace/logs/app.log")).toMatchObject({ exitCode: 0 });
    expect((await sandbox.permissions.explain("/.git/config")).permission).toBe("read");
  });

  test("a preset of one's own is registered and used like the others", async (context) => {
    registerPreset("ci-pipeline", [
      { pattern: "**/*", permission: "read" },
      { pattern: "/build/**", permission: "write" },
      { pattern: "/dist/**", permission: "write" },
      { pattern: "**/node_modules/**", permission: "none" },
      { pattern: "**/.env*", permission: "none" },
    ]);
    const files = {
      "package.json": '{"name": "app", "scripts": {"build": "mkdir -p dist && ls -A > dist/list.txt"}}\n',
      "node_modules/left/index.js": "",
      ".env": "K=1\n",
    };
    await using sandbox = await Sandbox.fromLocal(stage.project(files), {
      ...stage.place,
      preset: "ci-pipeline",
      env: { npm_config_cache: "/tmp/npm", npm_config_update_notifier: "false" },
    });
    const found = await sandbox.run("command -v npm");
    if (found.exitCode !== 0) context.skip("npm is not below /usr of this machine, so the sandbox does not have it");
    expect(await sandbox.run("npm run build")).toMatchObject({ exitCode: 0 });
    expect(await sandbox.files.readFile("dist/list.txt", "utf8")).toBe("dist\npackage.json\n");
  });

  test("two sandboxes on one codebase: the last writer wins", async () => {
    const { client } = stage;
    const codebase = await client.createCodebase({ name: "shared", ownerId: "me" });
    const options = { ...stage.place, preset: "full-access", sync: "on-exec" } as const;
    {
      await using sandboxA = await Sandbox.fromCodebase(codebase.id, options);
      await sandboxA.run("echo A > /workspace/output.txt");
    }
    {
      await using sandboxB = await Sandbox.fromCodebase(codebase.id, options);
      await sandboxB.run("echo B > /workspace/output.txt");
    }
    expect(new TextDecoder().decode(await client.downloadFile(codebase.id, "output.txt"))).toBe("B\n");
    await client.deleteCodebase(codebase.id);
  });

  test("two sandboxes at once do not see each other's writes before they are applied", async () => {
    const directory = stage.project({ "output.txt": "before\n" });
    const options = { ...stage.place, preset: "full-access" } as const;
    await using one = await Sandbox.fromLocal(directory, options);
    await using other = await Sandbox.fromLocal(directory, options);
    await one.run("echo A > /workspace/output.txt");
    await other.run("echo B > /workspace/output.txt");
    expect((await one.run("cat output.txt")).stdout).toBe("A\n");
    expect((await other.run("cat output.txt")).stdout).toBe("B\n");
    expect(readFileSync(join(directory, "output.txt"), "utf8")).toBe("before\n");
  });

  test("writes that do not last: read-only refuses them, never keeps them from the codebase", async () => {
    const directory = stage.project({ "a.txt": "a\n" });
    await using readOnly = await Sandbox.fromLocal(directory, { ...stage.place, preset: "read-only" });
    expect(await readOnly.run("echo x > a.txt")).toMatchObject({ exitCode: 1 });
    await using never = await Sandbox.fromLocal(directory, { ...stage.place, preset: "full-access", sync: "never" });
    expect(await never.run("echo x > a.txt")).toMatchObject({ exitCode: 0, syncedVersion: 0 });
    await expect(never.apply()).rejects.toMatchObject({ code: "SYNC_REFUSED" });
    expect(readFileSync(join(directory, "a.txt"), "utf8")).toBe("a\n");
  });
});

let venv: Promise<string> | undefined;
afterAll(async () => rmSync((await venv) ?? "", { recursive: true, force: true }));

/**
 * A directory with a virtual environment, the same for all tests. One knows its own path, so it is made where it will be used:
 * in a sandbox.
 */
function preparedVenv(): Promise<string> {
  venv ??= (async () => {
    const directory = mkdtempSync(join(tmpdir(), "agentfense-venv-"));
    await using sandbox = await Sandbox.fromLocal(directory, { preset: "full-access" });
    await sandbox.run("python3 -m venv venv", { check: true });
    const { outcomes } = await sandbox.apply();
    expect(outcomes.filter(({ applied }) => !applied)).toEqual([]);
    return directory;
  })();
  return venv;
}
