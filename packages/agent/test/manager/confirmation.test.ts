// Nothing risky is run unless somebody agreed to exactly that, in time.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { AutoApproveConfirmationService, AutoDenyConfirmationService } from "../../src/confirmation/callback.ts";
import type { ExecutionRequest } from "../../src/types.ts";
import { reviewer, StageExecutor, stage } from "./actors.ts";

const risky: ExecutionRequest = { code: "HIGH code", language: "bash" };

test("without anybody to ask, risky code is denied, and the text says what to do", async () => {
  const executor = new StageExecutor("docker");
  const { manager, events } = stage({ executors: [executor] });
  expect(await manager.execute(risky)).toMatchObject({
    success: false,
    errorCode: "DENIED",
    error: expect.stringContaining("give the manager a confirmation service"),
  });
  expect([executor.tasks, events.map(({ type }) => type)]).toEqual([[], ["assessed", "failed"]]);
  await manager.cleanup();
});

test("what is denied is not run, what is approved is", async () => {
  for (const [confirmation, code] of [
    [new AutoDenyConfirmationService(), "DENIED"],
    [new AutoApproveConfirmationService(), undefined],
  ] as const) {
    const executor = new StageExecutor("docker");
    await using manager = stage({ executors: [executor], confirmation }).manager;
    expect((await manager.execute(risky)).errorCode).toBe(code);
    expect(executor.tasks).toHaveLength(code === undefined ? 1 : 0);
  }
});

test("what the reviewer says is told", async () => {
  const confirmation = reviewer(async () => ({ decision: "denied", reviewer: "ann", comment: "not on a Friday" }));
  await using manager = stage({ confirmation }).manager;
  expect(await manager.execute(risky)).toMatchObject({
    error: "the code is rated HIGH, and it was denied: not on a Friday",
  });
});

test("nobody is asked about code that needs no asking", async () => {
  const confirmation = reviewer(async () => ({}));
  await using manager = stage({ confirmation }).manager;
  for (const level of ["SAFE", "LOW", "MEDIUM"]) await manager.execute({ code: level, language: "bash" });
  expect(confirmation.asked).toEqual([]);
});

test("what is shown is the code and all else that decides what it does", async () => {
  const confirmation = reviewer(async () => ({ decision: "denied" }));
  const { manager, events } = stage({
    confirmation,
    confirmationTimeoutMs: 60_000,
    assess: async () => ({ level: "HIGH", detected: [{ pattern: "x", reason: "kills\nall", line: 2 }] }),
  });
  const before = Date.now();
  const env = { SHORT: 'a "b"', LONG: "x".repeat(300) };
  await manager.execute({ code: "kill\n  -9", language: "bash", timeoutMs: 77, files: { "a\n\u202eb": "xyz" }, env });
  const [asked] = confirmation.asked;
  const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
  expect(asked).toMatchObject({ sessionId: "stage", action: "run_code", code: "kill\n  -9", risk: { level: "HIGH" } });
  expect(asked?.reason.split("\n")).toEqual([
    "bash code is rated HIGH, and STRICT mode asks before that is run",
    "- kills\\u{a}all",
    '- it is given the file "a\\n\\u{202e}b"',
    "- it is given variables",
    "It may take 77 ms.",
    `File "a\\n\\u{202e}b": 3 bytes, SHA-256 ${sha256("xyz")}`,
    'Variable SHORT: "a \\"b\\""',
    `Variable LONG: 300 bytes, SHA-256 ${sha256("x".repeat(300))}`,
  ]);
  const expiry = asked?.expiresAt.getTime() ?? 0;
  expect(expiry).toBeGreaterThanOrEqual(before + 60_000);
  expect(expiry).toBeLessThanOrEqual(Date.now() + 60_000);
  expect(events.map(({ type }) => type)).toEqual([
    "assessed",
    "confirmation_requested",
    "confirmation_answered",
    "failed",
  ]);
  await manager.cleanup();
});

test("what is run is what was shown, whatever the caller does to the request meanwhile", async () => {
  const executor = new StageExecutor("docker");
  const asking = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const confirmation = reviewer(async () => {
    asking.resolve();
    await gate.promise;
    return {};
  });
  await using manager = stage({ executors: [executor], confirmation }).manager;
  const files: Record<string, string> = { "run.sh": "echo harmless" };
  const request = { code: "HIGH harmless", language: "bash" as const, files };
  const executing = manager.execute(request);
  await asking.promise;
  request.code = "HIGH rm -rf /";
  files["run.sh"] = "rm -rf /";
  files["more.sh"] = "rm -rf /";
  gate.resolve();
  expect(await executing).toMatchObject({ success: true });
  expect(executor.tasks).toMatchObject([{ code: "HIGH harmless", files: { "run.sh": "echo harmless" } }]);
  expect(Object.keys(executor.tasks[0]?.files ?? {})).toEqual(["run.sh"]);
});

test("an approval for something else is none", async () => {
  const executor = new StageExecutor("docker");
  const confirmation = reviewer(async () => ({ hash: "0".repeat(64), reviewer: "mallory" }));
  const { manager, events } = stage({ executors: [executor], confirmation });
  expect(await manager.execute(risky)).toMatchObject({
    errorCode: "DENIED",
    error: "the code is rated HIGH, and it was denied: the approval is not for what was asked",
  });
  expect(events.find(({ type }) => type === "confirmation_answered")).toMatchObject({
    decision: "denied",
    reviewer: "mallory",
  });
  expect(executor.tasks).toEqual([]);
  await manager.cleanup();
});

test("an answer that makes no sense is a no", async () => {
  for (const answer of [undefined, null, "approved", {}, { decision: "yes" }, { decision: "approved" }]) {
    const executor = new StageExecutor("docker");
    await using manager = stage({
      executors: [executor],
      confirmation: { request: async () => answer as never },
    }).manager;
    expect(await manager.execute(risky), JSON.stringify(answer)).toMatchObject({ errorCode: "DENIED" });
    expect(executor.tasks).toEqual([]);
  }
});

test("a service that fails is a no", async () => {
  const executor = new StageExecutor("docker");
  const throwing = [
    () => Promise.reject(new Error("nobody is connected")),
    () => {
      throw new Error("nobody is connected");
    },
  ];
  for (const request of throwing) {
    await using manager = stage({ executors: [executor], confirmation: { request } }).manager;
    expect(await manager.execute(risky)).toMatchObject({
      errorCode: "DENIED",
      error: expect.stringContaining("nobody is connected"),
    });
  }
  expect(executor.tasks).toEqual([]);
});

test("silence is a no when the time is over, and an answer after that changes nothing", async () => {
  const executor = new StageExecutor("docker");
  const late = Promise.withResolvers<void>();
  let wasTold: AbortSignal | undefined;
  const confirmation = reviewer(async (_request, signal) => {
    wasTold = signal;
    await late.promise;
    return {};
  });
  const { manager, events } = stage({ executors: [executor], confirmation, confirmationTimeoutMs: 20 });
  expect(await manager.execute(risky)).toMatchObject({
    errorCode: "DENIED",
    error: "the code is rated HIGH, and it was denied: nobody answered in time",
  });
  expect(wasTold?.aborted).toBe(true);
  late.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  expect(executor.tasks).toEqual([]);
  expect(events.find(({ type }) => type === "confirmation_answered")).toMatchObject({ decision: "timed_out" });
  await manager.cleanup();
});

test("who gives up while somebody is asked gets his reason, and the question is withdrawn", async () => {
  const executor = new StageExecutor("docker");
  const asking = Promise.withResolvers<AbortSignal | undefined>();
  const confirmation = reviewer(async (_request, signal) => {
    asking.resolve(signal);
    return await new Promise<never>(() => {});
  });
  await using manager = stage({ executors: [executor], confirmation }).manager;
  const ending = new AbortController();
  const executing = expect(manager.execute(risky, { signal: ending.signal })).rejects.toThrow("never mind");
  const told = await asking.promise;
  ending.abort(new Error("never mind"));
  await executing;
  expect(told?.aborted).toBe(true);
  expect(executor.tasks).toEqual([]);
});
