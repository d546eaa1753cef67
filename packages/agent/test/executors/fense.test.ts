import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "agentfense";
import { afterAll, describe, expect, test } from "vitest";
import { TestServer } from "../../../../test/support/server.ts";
import type { ExecutionTask } from "../../src/executors/executor.ts";
import { FenseExecutor } from "../../src/executors/fense/fense-executor.ts";
import type { SandboxSource } from "../../src/executors/sandboxed/sandbox-source.ts";
import { LANGUAGES } from "../../src/types.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";
import { SandboxWorkspace } from "../../src/workspace/sandbox-workspace.ts";
import { describeExecutor } from "./contract.ts";

const base = mkdtempSync(join(tmpdir(), "agentfense-fense-"));
afterAll(() => rmSync(base, { recursive: true }));

const limits = { memoryBytes: 256 * 1024 ** 2, pids: 128 };

function newWorkspace(): AgentWorkspace {
  return new AgentWorkspace("session", { directory: mkdtempSync(join(base, "workspace-")) });
}

describeExecutor("FenseExecutor", {
  type: "fense",
  languages: LANGUAGES,
  open: async () =>
    new FenseExecutor({
      workspace: newWorkspace(),
      sandboxes: Sandbox,
      resources: { memoryBytes: limits.memoryBytes, pidsLimit: limits.pids },
    }),
  limits,
});

const TASK: Omit<ExecutionTask, "code"> = {
  language: "bash",
  risk: { level: "MEDIUM", detected: [] },
  securityMode: "STRICT",
};

describe("FenseExecutor on a workspace", () => {
  test("the code and the workspace see the same files", async () => {
    const workspace = newWorkspace();
    await using executor = new FenseExecutor({ workspace, sandboxes: Sandbox });
    await workspace.writeFile("given.txt", "from the workspace");
    const first = await executor.execute({ ...TASK, code: "cat given.txt; mkdir -p out; echo made > out/made.txt" });
    expect(first).toMatchObject({ stdout: "from the workspace", stderr: "" });
    expect(await workspace.readFile("out/made.txt")).toBe("made\n");
    await workspace.writeFile("out/made.txt", "changed");
    const second = await executor.execute({ ...TASK, code: "cat out/made.txt; rm given.txt", files: { "f.txt": "1" } });
    expect(second.stdout).toBe("changed");
    expect((await workspace.list("", { recursive: true })).map(({ path }) => path)).toEqual([
      "f.txt",
      "out",
      "out/made.txt",
    ]);
  });

  test("rules apply to the code and to the files that come with it", async () => {
    const workspace = newWorkspace();
    await workspace.writeFile(".env", "SECRET=1");
    await workspace.writeFile("src/a.txt", "source");
    // The code could have put it there: it changes nothing.
    await workspace.writeFile(".agentfense.yaml", "version: 1\npreset: development\n");
    await using executor = new FenseExecutor({ workspace, sandboxes: Sandbox, preset: "agent-safe" });
    const outcome = await executor.execute({
      ...TASK,
      code: "cat src/a.txt; cat .env; echo x > src/a.txt; echo ok > output",
    });
    expect(outcome.stdout).toBe("source");
    expect(outcome.stderr).toMatch(/\.env: No such file[\s\S]*Permission denied/);
    for (const path of [".env", "src/a.txt"]) {
      const attempt = executor.execute({ ...TASK, code: "true", files: { [path]: "x" } });
      await expect(attempt).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    }
    expect(await workspace.readFile(".env")).toBe("SECRET=1");
    expect(await workspace.readFile("src/a.txt")).toBe("source");
  });

  test("what cannot be written into the workspace is told on stderr", async () => {
    const workspace = newWorkspace();
    await using executor = new FenseExecutor({ workspace, sandboxes: Sandbox });
    const outcome = await executor.execute({ ...TASK, code: "mkfifo pipe; echo ok > file; printf err >&2" });
    expect(outcome).toMatchObject({ exitCode: 0, stdout: "" });
    expect(outcome.stderr).toMatch(/^err\nagentfense: "\/pipe" was not written into the workspace: .+\n$/);
    expect((await workspace.list()).map(({ path }) => path)).toEqual(["file"]);
    // For the next execution there is what the workspace has.
    expect(await executor.execute({ ...TASK, code: "ls -A" })).toMatchObject({ stdout: "file\n", stderr: "" });
  });

  test("a sandbox that is gone is replaced", async () => {
    const workspace = newWorkspace();
    const opened: Sandbox[] = [];
    const sandboxes: SandboxSource = {
      fromLocal: async (...args) => {
        const sandbox = await Sandbox.fromLocal(...args);
        opened.push(sandbox);
        return sandbox;
      },
    };
    await using executor = new FenseExecutor({ workspace, sandboxes });
    for (const code of ["echo kept > kept.txt", "echo 2 >> kept.txt"]) await executor.execute({ ...TASK, code });
    expect(opened.length).toBe(1);
    await opened[0]!.destroy();
    expect(await executor.execute({ ...TASK, code: "cat kept.txt" })).toMatchObject({ stdout: "kept\n2\n" });
    await opened[1]!.stop();
    expect(await executor.execute({ ...TASK, code: "cat kept.txt" })).toMatchObject({ stdout: "kept\n2\n" });
    expect(opened.length).toBe(3);
  });

  test("what was aborted has changed nothing", async () => {
    const workspace = newWorkspace();
    await using executor = new FenseExecutor({ workspace, sandboxes: Sandbox });
    const leaving = new AbortController();
    const code = "echo half > half.txt; until test -e never; do sleep 0.1; done";
    const running = executor.execute({ ...TASK, code }, { signal: leaving.signal }).catch((error: unknown) => error);
    const beside = await executor.execute({ ...TASK, code: "echo whole > whole.txt" });
    expect(beside).toMatchObject({ exitCode: 0, stderr: "" });
    leaving.abort();
    expect(await running).toBe(leaving.signal.reason);
    expect(await executor.execute({ ...TASK, code: "ls -A" })).toMatchObject({ stdout: "whole.txt\n" });
    expect((await workspace.list()).map(({ path }) => path)).toEqual(["whole.txt"]);
  });

  test("a server that is not there is told", async () => {
    await using executor = new FenseExecutor({ workspace: newWorkspace(), endpoint: "http://127.0.0.1:1", retries: 0 });
    await expect(executor.execute({ ...TASK, code: "true" })).rejects.toMatchObject({
      name: "ExecutorError",
      code: "UNAVAILABLE",
    });
    await expect(executor.check()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  test("with a server, which has a copy of the files, the same holds", async () => {
    await using server = await TestServer.start();
    const workspace = newWorkspace();
    await workspace.writeFile(".gitignore", "*.txt\n");
    await workspace.writeFile("given.txt", "one");
    await using executor = new FenseExecutor({ workspace, endpoint: server.grpc });
    expect(await executor.execute({ ...TASK, code: "cat given.txt; echo made > made.txt" })).toMatchObject({
      stdout: "one",
      stderr: "",
    });
    expect(await workspace.readFile("made.txt")).toBe("made\n");
    await workspace.writeFile("given.txt", "two");
    expect(await executor.execute({ ...TASK, code: "cat given.txt made.txt; rm made.txt" })).toMatchObject({
      stdout: "twomade\n",
      stderr: "",
    });
    expect((await workspace.list()).map(({ path }) => path)).toEqual([".gitignore", "given.txt"]);
  });
});

describe("FenseExecutor in a sandbox that is there", () => {
  test("changes stay in it, and it stays", async () => {
    const workspace = newWorkspace();
    await using sandbox = await Sandbox.fromLocal(workspace.directory, { preset: "development" });
    const executor = new FenseExecutor({ sandbox });
    const files = { "given.txt": "given" };
    expect(await executor.execute({ ...TASK, code: "cat given.txt; echo made > made.txt", files })).toMatchObject({
      stdout: "given",
    });
    await executor[Symbol.asyncDispose]();
    expect(await workspace.list()).toEqual([]);
    const view = new SandboxWorkspace(sandbox);
    expect((await view.list()).map(({ path }) => path)).toEqual(["given.txt", "made.txt"]);
    expect(await sandbox.refresh()).toMatchObject({ status: "running" });
  });
});

describe("code that keeps its names", () => {
  test("has those of the code before, for each executor its own, and shows its values", async () => {
    await using sandbox = await Sandbox.create({ preset: "full-access" });
    await using executor = new FenseExecutor({ sandbox });
    const kept = { ...TASK, language: "python", keepsState: true } as const;
    expect(await executor.execute({ ...kept, code: "print('out')\nx = 20\nx + 1" })).toMatchObject({
      ...{ stdout: "out\n21", stderr: "", exitCode: 0, results: [{ data: { "text/plain": "21" } }] },
    });
    const failed = await executor.execute({ ...kept, code: "x / 0", env: { A: "b" } });
    expect(failed).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("ZeroDivisionError") });
    const late = await executor.execute({ ...kept, code: "while True: pass", timeoutMs: 200 });
    expect(late).toMatchObject({ timedOut: true });
    expect((await executor.execute({ ...kept, code: "x" })).stdout).toBe("20");
    expect((await executor.execute({ ...kept, code: "print('x' in globals())", keepsState: false })).stdout).toBe(
      "False\n",
    );
    await using other = new FenseExecutor({ sandbox });
    expect((await other.execute({ ...kept, code: "'x' in globals()" })).stdout).toBe("False");
    await executor.execute({ ...kept, code: "import os; os._exit(3)" });
    expect((await executor.execute({ ...kept, code: "1" })).stderr).toContain("the names of earlier code are gone");
    await sandbox.stop();
    await sandbox.start();
    expect((await executor.execute({ ...kept, code: "'x' in globals()" })).stdout).toBe("False");
  });

  test("is refused where each execution may get another sandbox", async () => {
    await using executor = new FenseExecutor({ workspace: newWorkspace(), sandboxes: Sandbox });
    const task = { ...TASK, code: "true", keepsState: true };
    await expect(executor.execute(task)).rejects.toMatchObject({ code: "REFUSED" });
  });
});
