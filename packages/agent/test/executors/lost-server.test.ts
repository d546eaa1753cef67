import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "@agentfense/sdk";
import { expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { TestServer } from "../../../../test/support/server.ts";
import { FenseExecutor } from "../../src/executors/fense/fense-executor.ts";

test("code whose server ends meanwhile may have run, and is not said to be elsewhere's to run", async () => {
  await using server = await TestServer.start();
  const directory = mkdtempSync(join(tmpdir(), "agentfense-lost-"));
  try {
    const sandbox = await Sandbox.fromLocal(directory, { endpoint: server.grpc, preset: "full-access" });
    await using executor = new FenseExecutor({ sandbox });
    const task = { language: "bash", risk: { level: "LOW", detected: [] }, securityMode: "STRICT" } as const;
    const running = executor.execute({ ...task, code: "touch begun; sleep 1000", timeoutMs: 600_000 });
    const outcome = running.catch((error: unknown) => error);
    await eventually(async () => (await sandbox.files.readdir("/")).includes("begun"));
    await server.stop();
    expect(await outcome).toMatchObject({ name: "ExecutorError", code: "INTERNAL" });
    expect(await executor.execute({ ...task, code: "true" }).catch((error: unknown) => error)).toMatchObject({
      name: "ExecutorError",
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
