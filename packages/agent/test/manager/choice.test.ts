// Which executor runs what.

import { expect, test } from "vitest";
import { AutoApproveConfirmationService } from "../../src/confirmation/callback.ts";
import { ExecutorError } from "../../src/errors.ts";
import { OverdueExecution, runInTime } from "../../src/manager/execution.ts";
import type { RiskLevel, SandboxType, SecurityMode } from "../../src/types.ts";
import { forever, outcome, StageExecutor, stage } from "./actors.ts";

const confirmation = new AutoApproveConfirmationService();
const ALL: readonly SandboxType[] = ["aio", "docker", "fense", "subprocess"];

const unavailable = (type: SandboxType): StageExecutor =>
  new StageExecutor(type, () => {
    throw new ExecutorError("UNAVAILABLE", `${type} is out of order`, { hint: "start it" });
  });

async function chosen(
  level: RiskLevel,
  securityMode: SecurityMode,
  types: readonly SandboxType[],
): Promise<SandboxType | undefined> {
  const executors = types.map((type) => new StageExecutor(type));
  await using manager = stage({ executors, confirmation, securityMode }).manager;
  return (await manager.execute({ code: `${level} code`, language: "python" })).sandboxType;
}

test("each level and mode has the sandbox that the table says", async () => {
  const found: Partial<Record<string, SandboxType | undefined>> = {};
  for (const mode of ["PERMISSIVE", "STRICT"] as const) {
    for (const level of ["SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"] as const) {
      found[`${mode} ${level}`] = await chosen(level, mode, ALL);
    }
  }
  expect(found).toEqual({
    "PERMISSIVE SAFE": "subprocess",
    "PERMISSIVE LOW": "fense",
    "PERMISSIVE MEDIUM": "fense",
    "PERMISSIVE HIGH": "fense",
    "PERMISSIVE CRITICAL": "docker",
    "STRICT SAFE": "subprocess",
    "STRICT LOW": "fense",
    "STRICT MEDIUM": "fense",
    "STRICT HIGH": "docker",
    "STRICT CRITICAL": "docker",
  });
});

test("where the wanted one is missing, another sandbox stands in, never a subprocess", async () => {
  expect(await chosen("SAFE", "STRICT", ["docker", "fense"])).toBe("fense");
  expect(await chosen("SAFE", "STRICT", ["aio"])).toBe("aio");
  expect(await chosen("LOW", "PERMISSIVE", ["subprocess", "aio"])).toBe("aio");
  expect(await chosen("CRITICAL", "STRICT", ["subprocess", "fense", "aio"])).toBe("fense");
  for (const level of ["LOW", "MEDIUM", "HIGH", "CRITICAL"] as const) {
    for (const mode of ["PERMISSIVE", "STRICT"] as const) {
      expect(await chosen(level, mode, ["subprocess"]), `${level} ${mode}`).toBeUndefined();
    }
  }
});

test("with nothing that may run it, it is refused, and the text says what is missing", async () => {
  const executors = [new StageExecutor("subprocess"), new StageExecutor("fense", undefined, ["bash"])];
  await using manager = stage({ executors }).manager;
  expect(await manager.execute({ code: "LOW code", language: "python" })).toMatchObject({
    success: false,
    errorCode: "REFUSED",
    sandboxType: undefined,
    error: "there is no executor that may run python code rated LOW: it takes a sandbox",
  });
  expect(executors.flatMap(({ tasks }) => tasks)).toEqual([]);
});

test("an executor that is not to be had is passed over, and the events tell so", async () => {
  const [docker, subprocess, aio] = [unavailable("docker"), new StageExecutor("subprocess"), new StageExecutor("aio")];
  const { manager, events } = stage({ executors: [docker, subprocess, aio], confirmation });
  expect(await manager.execute({ code: "HIGH code", language: "bash" })).toMatchObject({
    success: true,
    sandboxType: "aio",
  });
  expect(events.map((event) => ("sandboxType" in event ? `${event.type} ${event.sandboxType}` : event.type))).toEqual([
    "assessed",
    "confirmation_requested",
    "confirmation_answered",
    "sandbox_chosen docker",
    "started docker",
    "sandbox_unavailable docker",
    "sandbox_chosen aio",
    "started aio",
    "finished",
  ]);
  expect([docker.tasks.length, subprocess.tasks.length]).toEqual([1, 0]);
  await manager.cleanup();
});

test("when none is to be had, the last one's reason is the answer", async () => {
  await using manager = stage({ executors: [unavailable("fense"), unavailable("docker")] }).manager;
  expect(await manager.execute({ code: "LOW code", language: "bash" })).toMatchObject({
    errorCode: "UNAVAILABLE",
    error: "docker is out of order (start it)",
    sandboxType: undefined,
    exitCode: -1,
  });
});

test("a subprocess that refuses leaves it to a sandbox", async () => {
  const subprocess = new StageExecutor("subprocess", () => {
    throw new ExecutorError("REFUSED", "not here");
  });
  await using manager = stage({ executors: [subprocess, new StageExecutor("fense")] }).manager;
  expect(await manager.execute({ code: "SAFE code", language: "python" })).toMatchObject({ sandboxType: "fense" });
});

test("what fails in an unknown way is not run a second time elsewhere", async () => {
  const other = new StageExecutor("docker");
  const broken = new StageExecutor("fense", () => {
    throw new Error("/secret/path is full");
  });
  const { manager, events } = stage({ executors: [broken, other] });
  const result = await manager.execute({ code: "LOW code", language: "python" });
  expect(result).toMatchObject({ errorCode: "INTERNAL", success: false });
  expect(result.error).not.toContain("secret");
  expect(events.at(-1)).toMatchObject({
    type: "failed",
    errorCode: "INTERNAL",
    error: { message: "/secret/path is full" },
  });
  expect(other.tasks).toEqual([]);
  await manager.cleanup();
});

test("what comes of code is told by code and text", async () => {
  const outcomes = {
    ok: outcome({ stdout: "hi\n" }),
    exit: outcome({ exitCode: 3, stderr: "Traceback\nValueError: no\n" }),
    quiet: outcome({ exitCode: 1 }),
    slow: outcome({ exitCode: 137, timedOut: true }),
    large: outcome({ exitCode: 137, outOfMemory: true }),
  };
  const play = new StageExecutor("fense", ({ code }) => outcomes[code.split(" ")[1] as keyof typeof outcomes]);
  await using manager = stage({ executors: [play] }).manager;
  const of = async (name: string): Promise<unknown> => {
    const { success, errorCode, error } = await manager.execute({
      code: `LOW ${name}`,
      language: "python",
      timeoutMs: 5,
    });
    return [success, errorCode, error];
  };
  expect(await of("ok")).toEqual([true, undefined, undefined]);
  expect(await of("exit")).toEqual([false, "EXIT_CODE", "it ended with exit code 3: ValueError: no"]);
  expect(await of("quiet")).toEqual([false, "EXIT_CODE", "it ended with exit code 1"]);
  expect(await of("slow")).toEqual([false, "TIMEOUT", "it did not end within 5 ms"]);
  expect(await of("large")).toEqual([false, "OUT_OF_MEMORY", "it used more memory than it may"]);
});

test("an executor that does not end in time is not waited for, and what it does is not tried elsewhere", async () => {
  let told: AbortSignal | undefined;
  const lost = new StageExecutor("aio", async (_task, signal) => {
    told = signal;
    return await new Promise<never>(() => {});
  });
  const task = { code: "", language: "bash", timeoutMs: 1, risk: { level: "LOW", detected: [] } } as const;
  const running = runInTime(lost, { ...task, securityMode: "STRICT" }, new AbortController().signal, 5);
  await expect(running).rejects.toThrow("the executor (aio) did not end it within 1 ms");
  expect(told?.aborted).toBe(true);

  const other = new StageExecutor("docker");
  const slow = new StageExecutor("fense", () => Promise.reject(new OverdueExecution("it did not end")));
  await using manager = stage({ executors: [slow, other] }).manager;
  expect(await manager.execute({ code: "LOW", language: "bash" })).toMatchObject({
    errorCode: "TIMEOUT",
    timedOut: true,
    sandboxType: "fense",
  });
  expect(other.tasks).toEqual([]);
});

test("executions run side by side", async () => {
  const gate = Promise.withResolvers<void>();
  const executor = new StageExecutor("fense", async ({ code }) => {
    if (code.endsWith("first")) await gate.promise;
    return outcome({ stdout: code });
  });
  await using manager = stage({ executors: [executor] }).manager;
  const first = manager.execute({ code: "LOW first", language: "bash" });
  expect(await manager.execute({ code: "LOW second", language: "bash" })).toMatchObject({ stdout: "LOW second" });
  gate.resolve();
  expect(await first).toMatchObject({ stdout: "LOW first" });
});

test("aborting ends the code and throws the reason", async () => {
  const { manager, events } = stage({ executors: [new StageExecutor("fense", forever)] });
  const ending = new AbortController();
  const started = new Promise<void>((resolve) => {
    manager.subscribe(({ type }) => type === "started" && resolve());
  });
  const executing = manager.execute({ code: "LOW code", language: "bash" }, { signal: ending.signal });
  await started;
  ending.abort(new Error("enough"));
  await expect(executing).rejects.toThrow("enough");
  expect(events.at(-1)).toMatchObject({ type: "failed", errorCode: "ABORTED" });
  expect(manager.history).toMatchObject([{ errorCode: "ABORTED", success: false, sandboxType: "fense" }]);
  await expect(manager.execute({ code: "LOW x", language: "bash" }, { signal: ending.signal })).rejects.toThrow(
    "enough",
  );
  expect(manager.history).toHaveLength(1);
  await manager.cleanup();
});

test("cleaning up ends what is under way, leaves alone what was handed in, and is the end", async () => {
  const executor = new StageExecutor("fense", forever);
  const { manager } = stage({ executors: [executor] });
  const started = new Promise<void>((resolve) => {
    manager.subscribe(({ type }) => type === "started" && resolve());
  });
  const executing = expect(manager.execute({ code: "LOW code", language: "bash" })).rejects.toThrow("is cleaned up");
  await started;
  await manager.cleanup();
  await executing;
  await manager.cleanup();
  expect(executor.isDisposed).toBe(false);
  await expect(manager.execute({ code: "LOW code", language: "bash" })).rejects.toThrow("is cleaned up");
});

test("the last executions are remembered, without their output", async () => {
  const executor = new StageExecutor("fense", () => outcome({ stdout: "x".repeat(100_000) }));
  await using manager = stage({ executors: [executor], historyLimit: 3 }).manager;
  for (const number of [1, 2, 3, 4]) {
    await manager.execute({ code: `LOW ${number} ${"y".repeat(5_000)}`, language: "bash" });
  }
  await manager.execute({ code: "HIGH", language: "bash" });
  expect(manager.history.map(({ code, success, errorCode }) => [code.slice(0, 5), success, errorCode])).toEqual([
    ["LOW 3", true, undefined],
    ["LOW 4", true, undefined],
    ["HIGH", false, "DENIED"],
  ]);
  expect(JSON.stringify(manager.history).length).toBeLessThan(6_000);
});

test("a listener can leave, and one that throws disturbs nothing", async () => {
  const { manager } = stage();
  const seen: string[] = [];
  const leave = manager.subscribe(({ type }) => seen.push(type));
  manager.subscribe(() => {
    throw new Error("not interested");
  });
  const warned = new Promise<Error>((resolve) => void process.once("warning", resolve));
  expect(await manager.execute({ code: "LOW", language: "bash" })).toMatchObject({ success: true });
  expect(seen).toEqual(["assessed", "sandbox_chosen", "started", "finished"]);
  leave();
  await manager.execute({ code: "LOW", language: "bash" });
  expect(seen).toHaveLength(4);
  expect((await warned).message).toBe("a listener threw: not interested");
  await manager.cleanup();
});
