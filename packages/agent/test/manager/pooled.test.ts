// Managers that share a pool.

import { expect, test } from "vitest";
import { ExecutorError, PoolError } from "../../src/errors.ts";
import { executorPool } from "../../src/pool/executor-pool.ts";
import type { SandboxPool } from "../../src/pool/pool.ts";
import type { SandboxType } from "../../src/types.ts";
import { outcome, StageExecutor, stage } from "./actors.ts";

async function stagePool(
  make: (number: number) => StageExecutor = () => new StageExecutor("aio"),
  max = 2,
): Promise<SandboxPool<StageExecutor> & { readonly made: StageExecutor[] }> {
  const made: StageExecutor[] = [];
  const pool = executorPool({
    create: async () => {
      const executor = make(made.length + 1);
      made.push(executor);
      return executor;
    },
    max,
    acquireTimeoutMs: 50,
    retryMs: 1,
  });
  await pool.start();
  return Object.assign(pool, { made });
}

const broken = (type: SandboxType = "aio"): StageExecutor =>
  new StageExecutor(type, () => {
    throw new ExecutorError("UNAVAILABLE", "the container is gone");
  });

test("a session takes an instance when it first needs one, keeps it, and gives it back in the end", async () => {
  await using pool = await stagePool();
  const { manager } = stage({ executors: undefined, pool });
  expect(pool.state("stage")).toBe("IDLE");
  expect(await manager.execute({ code: "LOW 1", language: "bash" })).toMatchObject({ sandboxType: "aio" });
  expect(await manager.execute({ code: "SAFE 2", language: "python" })).toMatchObject({ sandboxType: "aio" });
  expect(pool.made.map(({ tasks }) => tasks.length)).toEqual([2]);
  expect(pool.state("stage")).toBe("BUSY");
  await manager.cleanup();
  expect([pool.state("stage"), pool.made[0]?.isDisposed]).toEqual(["IDLE", true]);
});

test("sessions have instances of their own", async () => {
  await using pool = await stagePool();
  const managers = ["one", "two"].map((sessionId) => stage({ sessionId, executors: undefined, pool }).manager);
  await Promise.all(managers.map((manager) => manager.execute({ code: `LOW ${manager.sessionId}`, language: "bash" })));
  expect(pool.made.map(({ tasks }) => tasks.map(({ code }) => code))).toEqual([["LOW one"], ["LOW two"]]);
  for (const manager of managers) await manager.cleanup();
});

test("a broken instance is given up and another one tried, once", async () => {
  await using pool = await stagePool((number) => (number === 1 ? broken() : new StageExecutor("aio")));
  const { manager, events } = stage({ executors: undefined, pool });
  expect(await manager.execute({ code: "LOW", language: "bash" })).toMatchObject({ success: true });
  expect([pool.made.length, pool.made[0]?.isDisposed]).toEqual([2, true]);
  expect(events.filter(({ type }) => type === "sandbox_unavailable")).toHaveLength(1);
  await manager.cleanup();

  await using hopeless = await stagePool(() => broken());
  await using other = stage({ executors: undefined, pool: hopeless }).manager;
  expect(await other.execute({ code: "LOW", language: "bash" })).toMatchObject({
    errorCode: "UNAVAILABLE",
    error: "the container is gone",
  });
  expect(hopeless.made).toHaveLength(2);
});

test("of two executions that find an instance broken, the second leaves the first its new one", async () => {
  const gate = Promise.withResolvers<void>();
  const fragile = new StageExecutor("aio", async ({ code }) => {
    if (code === "LOW second") await gate.promise;
    throw new ExecutorError("UNAVAILABLE", "the container is gone");
  });
  const firstRuns = Promise.withResolvers<void>();
  const mayEnd = Promise.withResolvers<void>();
  await using pool = await stagePool((number) =>
    number === 1
      ? fragile
      : new StageExecutor("aio", async ({ code }) => {
          if (code === "LOW first") {
            firstRuns.resolve();
            await mayEnd.promise;
          }
          return outcome();
        }),
  );
  await using manager = stage({ executors: undefined, pool }).manager;
  const second = manager.execute({ code: "LOW second", language: "bash" });
  const first = manager.execute({ code: "LOW first", language: "bash" });
  await firstRuns.promise;
  gate.resolve();
  expect(await second).toMatchObject({ success: true });
  expect(pool.made.map(({ isDisposed }) => isDisposed)).toEqual([true, false]);
  mayEnd.resolve();
  expect(await first).toMatchObject({ success: true });
});

test("when the pool has nothing, another executor that isolates is used, else it is unavailable", async () => {
  await using pool = await stagePool(() => {
    throw new Error("no image");
  });
  const fense = new StageExecutor("fense");
  await using manager = stage({ executors: [new StageExecutor("subprocess"), fense], pool }).manager;
  expect(await manager.execute({ code: "LOW", language: "bash" })).toMatchObject({ sandboxType: "fense" });
  expect(await manager.execute({ code: "SAFE", language: "bash" })).toMatchObject({ sandboxType: "subprocess" });
  const { manager: alone, events } = stage({ sessionId: "alone", executors: undefined, pool });
  expect(await alone.execute({ code: "LOW", language: "bash" })).toMatchObject({
    errorCode: "UNAVAILABLE",
    error: expect.stringMatching(/^no instance (can be made: no image|became free for session alone within 50 ms)$/),
  });
  expect(events.find(({ type }) => type === "sandbox_unavailable")).toMatchObject({ error: expect.any(PoolError) });
  await alone.cleanup();
});

test("a pool of subprocesses gets nothing that must be isolated", async () => {
  await using pool = await stagePool(() => new StageExecutor("subprocess"));
  await using manager = stage({ executors: undefined, pool }).manager;
  expect(await manager.execute({ code: "SAFE", language: "python" })).toMatchObject({ sandboxType: "subprocess" });
  expect(await manager.execute({ code: "LOW", language: "python" })).toMatchObject({
    success: false,
    sandboxType: undefined,
    error: "the pool's executors (subprocess) are not for this",
  });
  expect(pool.made.map(({ tasks }) => tasks.length)).toEqual([1]);
});

test("a stopped pool is unavailable, and cleaning up after it is no problem", async () => {
  const pool = await stagePool();
  const { manager } = stage({ executors: undefined, pool });
  await manager.execute({ code: "LOW", language: "bash" });
  await pool.stop();
  expect(await manager.execute({ code: "LOW", language: "bash" })).toMatchObject({ errorCode: "UNAVAILABLE" });
  await expect(manager.workspace.list()).rejects.toMatchObject({ code: "NOT_RUNNING" });
  await manager.cleanup();
});

test("executors that show no files say so", async () => {
  await using pool = await stagePool();
  await using manager = stage({ executors: undefined, pool }).manager;
  await expect(manager.workspace.readFile("a")).rejects.toThrow("the pool's executors (aio) do not show their files");
});
