import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SubprocessExecutor } from "agentfense/agent";
import { afterAll, describe, expect, test } from "vitest";
import type { ExecutionTask } from "../../src/executors/executor.ts";
import { SubprocessExecutor as WithoutFilter } from "../../src/executors/subprocess/subprocess-executor.ts";
import { RISK_LEVELS } from "../../src/types.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";
import { describeExecutor } from "./contract.ts";

const base = mkdtempSync(join(tmpdir(), "agentfense-subprocess-"));
afterAll(() => rmSync(base, { recursive: true }));

function newWorkspace(): AgentWorkspace {
  return new AgentWorkspace("session", { directory: mkdtempSync(join(base, "workspace-")) });
}

/** The limit that keeps Python from starting anything does not hold for root. */
const isRoot = process.getuid?.() === 0;
const CANNOT_FORK = "Python cannot start a process here, as it should be";
const UNLESS_ROOT: Readonly<Record<string, string>> = isRoot
  ? {}
  : {
      "when the time is up, all of the tree is dead": CANNOT_FORK,
      "aborting throws the reason, and all of the tree is dead": CANNOT_FORK,
      "dispose ends what runs": CANNOT_FORK,
    };

describeExecutor("SubprocessExecutor", {
  type: "subprocess",
  languages: ["python", "javascript", "typescript"],
  open: async () => new SubprocessExecutor({ workspace: newWorkspace() }),
  skip: { "variables are passed": "code that is SAFE cannot read them, so none are handed over", ...UNLESS_ROOT },
});

const SAFE: Omit<ExecutionTask, "code"> = {
  language: "python",
  risk: { level: "SAFE", detected: [] },
  securityMode: "STRICT",
};

describe("SubprocessExecutor", () => {
  test.each(RISK_LEVELS.filter((level) => level !== "SAFE"))("%s is refused in every mode", async (level) => {
    const workspace = newWorkspace();
    await using executor = new SubprocessExecutor({ workspace });
    for (const securityMode of ["STRICT", "PERMISSIVE"] as const) {
      const risk = { level, detected: [] };
      const attempt = executor.execute({ ...SAFE, code: "print(1)", files: { "a.txt": "" }, risk, securityMode });
      await expect(attempt).rejects.toMatchObject({ name: "ExecutorError", code: "REFUSED" });
    }
    expect(await workspace.list()).toEqual([]);
  });

  test("there is no shell in it", async () => {
    await using executor = new SubprocessExecutor({ workspace: newWorkspace() });
    for (const language of ["bash", "command"] as const) {
      await expect(executor.execute({ ...SAFE, code: "true", language })).rejects.toMatchObject({
        code: "INVALID_REQUEST",
      });
    }
  });

  test("what is in the workspace does not take the place of what code imports", async () => {
    await using executor = new SubprocessExecutor({ workspace: newWorkspace() });
    const files = { "json.py": "raise SystemExit('hijacked')", "sitecustomize.py": "raise SystemExit('hijacked')" };
    const outcome = await executor.execute({ ...SAFE, code: "import json; print(json.dumps([1]))", files });
    expect(outcome).toMatchObject({ stdout: "[1]\n", stderr: "", exitCode: 0 });
  });

  test("memory is limited, and that it ran out is told", async () => {
    await using executor = new SubprocessExecutor({ workspace: newWorkspace(), maxMemoryBytes: 128 * 1024 ** 2 });
    const python = await executor.execute({ ...SAFE, code: "x = [b'x' * 2**20 for _ in range(10_000)]" });
    expect(python).toMatchObject({ outOfMemory: true, exitCode: 1 });
    const javascript = { ...SAFE, language: "javascript" } as const;
    const heap = await executor.execute({
      ...javascript,
      code: "const a = []; for (;;) a.push(new Array(1e5).fill(1))",
    });
    expect(heap).toMatchObject({ outOfMemory: true, exitCode: 134 });
    const buffers = await executor.execute({
      ...javascript,
      code: "const a = []; for (;;) a.push(Buffer.alloc(1e7, 1))",
    });
    expect(buffers).toMatchObject({ outOfMemory: true, exitCode: 1 });
  });

  test("the size of files is limited", async () => {
    await using executor = new SubprocessExecutor({ workspace: newWorkspace(), maxFileBytes: 100_000 });
    const outcome = await executor.execute({ ...SAFE, code: `with open('large', 'wb') as f: f.write(b'x' * 100_001)` });
    expect(outcome).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("File too large") });
    const fitting = await executor.execute({ ...SAFE, code: "open('fits', 'wb').write(b'x' * 100_000)" });
    expect(fitting).toMatchObject({ exitCode: 0, stderr: "" });
  });

  test("an interpreter that is missing is told", async () => {
    await using executor = new SubprocessExecutor({ workspace: newWorkspace(), python: "/nowhere/python3" });
    await expect(executor.execute({ ...SAFE, code: "1" })).rejects.toMatchObject({
      name: "ExecutorError",
      code: "UNAVAILABLE",
      message: "/nowhere/python3 is not installed",
      hint: expect.stringContaining("python"),
    });
  });

  test("without a system-call filter nothing is run", async () => {
    await using executor = new WithoutFilter({ workspace: newWorkspace() });
    const refusal = { code: "UNAVAILABLE", message: "there is no system-call filter for the box" };
    await expect(executor.check()).rejects.toMatchObject(refusal);
    await expect(executor.execute({ ...SAFE, code: "print(1)" })).rejects.toMatchObject(refusal);
  });

  test("where no box can be made nothing is run, and the reason is told", async () => {
    const workspace = newWorkspace();
    await using executor = new WithoutFilter({ workspace, syscallFilter: Buffer.from("no filter") });
    const refusal = {
      code: "UNAVAILABLE",
      message: "bubblewrap cannot make a box on this machine",
      hint: expect.stringContaining("nothing is run without a box"),
      cause: expect.objectContaining({ message: expect.stringMatching(/^bwrap: /) }),
    };
    await expect(executor.check()).rejects.toMatchObject(refusal);
    await expect(executor.execute({ ...SAFE, code: "open('ran', 'w')" })).rejects.toMatchObject(refusal);
    expect(await workspace.list()).toEqual([]);
  });

  test("only who says that there is to be no isolation is on the machine itself", async () => {
    const workspace = newWorkspace();
    await using executor = new SubprocessExecutor({ workspace, isolation: "none" });
    await executor.check();
    const code = "import os; print(os.getcwd(), os.path.exists('/proc/1'), sorted(os.environ))";
    expect(await executor.execute({ ...SAFE, code })).toMatchObject({
      stdout: `${workspace.directory} True ['HOME', 'LANG', 'PATH']\n`,
      exitCode: 0,
    });
    await expect(executor.execute({ ...SAFE, code, risk: { level: "LOW", detected: [] } })).rejects.toMatchObject({
      code: "REFUSED",
    });
  });

  test("a workspace that is gone is told", async () => {
    const workspace = newWorkspace();
    await using executor = new SubprocessExecutor({ workspace });
    await workspace.remove();
    await expect(executor.execute({ ...SAFE, code: "1" })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});
