import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import type { ExecutionTask } from "../../src/executors/executor.ts";
import { SubprocessExecutor } from "../../src/executors/subprocess/subprocess-executor.ts";
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

  test("the environment is empty, and privileges are none", async () => {
    const workspace = newWorkspace();
    await using executor = new SubprocessExecutor({ workspace });
    const code = `import json, os
status = {name: value.strip() for name, _, value in (line.partition(':') for line in open('/proc/self/status'))}
print(json.dumps({
  'env': sorted(os.environ), 'home': os.environ['HOME'],
  'caps': [status[name] for name in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb')], 'new': status['NoNewPrivs'],
  'leads': os.getpid() == os.getpgid(0) == os.getsid(0),
}))`;
    const { stdout } = await executor.execute({ ...SAFE, code, env: { LD_PRELOAD: "./evil.so", SECRET: "x" } });
    expect(JSON.parse(stdout)).toEqual({
      env: ["AGENTFENSE_EXECUTION", "HOME", "LANG", "PATH"],
      home: workspace.directory,
      caps: ["0000000000000000", "0000000000000000", "0000000000000000", "0000000000000000"],
      new: "1",
      leads: true,
    });
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

  test("javascript that was misjudged meets Node's own refusals", async () => {
    await using executor = new SubprocessExecutor({ workspace: newWorkspace() });
    const code = `const attempts = {
      read: () => require("node:fs").readFileSync("/etc/passwd"),
      process: () => require("node:child_process").execSync("true"),
      thread: () => new (require("node:worker_threads").Worker)("1", { eval: true }),
      string: () => new Function("return 1")(),
      inside: () => { require("node:fs").writeFileSync("inside.txt", "1"); throw new Error("allowed") },
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      try { attempt(); console.log(name, "reached") } catch (error) { console.log(name, error.code ?? error.message) }
    }`;
    const { stdout } = await executor.execute({ ...SAFE, code, language: "javascript" });
    expect(stdout.split("\n")).toEqual([
      "read ERR_ACCESS_DENIED",
      "process ERR_ACCESS_DENIED",
      "thread ERR_ACCESS_DENIED",
      "string Code generation from strings disallowed for this context",
      "inside allowed",
      "",
    ]);
  });

  test.skipIf(!isRoot)("children that were left behind do not survive", async () => {
    await using executor = new SubprocessExecutor({ workspace: newWorkspace() });
    const code = `import subprocess
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(subprocess.Popen(['sleep', '600'], start_new_session=True, **quiet).pid)`;
    const { exitCode, stdout } = await executor.execute({ ...SAFE, code });
    expect(exitCode).toBe(0);
    await eventually(() => expect(isAlive(Number(stdout))).toBe(false));
  });

  test.skipIf(!isRoot)("one that got away does not hold up the end", async () => {
    await using executor = new SubprocessExecutor({ workspace: newWorkspace() });
    const code = "import subprocess; print(subprocess.Popen(['sleep', '600'], env={}, start_new_session=True).pid)";
    const { exitCode, stdout } = await executor.execute({ ...SAFE, code });
    expect(exitCode).toBe(0);
    expect(Number(stdout)).toBeGreaterThan(1);
    process.kill(Number(stdout), "SIGKILL");
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

  test("a workspace that is gone is told", async () => {
    const workspace = newWorkspace();
    await using executor = new SubprocessExecutor({ workspace });
    await workspace.remove();
    await expect(executor.execute({ ...SAFE, code: "1" })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

/** A process that is dead and was not asked for yet does not count. */
function isAlive(pid: number): boolean {
  expect(pid).toBeGreaterThan(1);
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
