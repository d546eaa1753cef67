// The samples of the owner's document on the agent layer, in TypeScript: each runs with the result that it states.
// "docker" and "aio" there are the isolating sandboxes; here that is our own, in this process.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  AgentWorkspace,
  AutoApproveConfirmationService,
  AutoDenyConfirmationService,
  BrowserRouter,
  ConfirmationBroker,
  fensePool,
  PathTraversalError,
  RunCodeTool,
  SandboxManager,
  type SandboxManagerOptions,
  UnifiedRiskPolicy,
  WebSocketConfirmationService,
} from "@agentfense/agent";
import { Sandbox } from "agentfense";
import { afterAll, beforeAll, expect, test } from "vitest";

let base: string;
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "agentfense-agent-samples-"));
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** A workspace of the test's own: the one of a session by default outlives it. */
function workspaceOf(sessionId: string): AgentWorkspace {
  return new AgentWorkspace(sessionId, { directory: mkdtempSync(join(base, "workspace-")) });
}

function managerOf(options: SandboxManagerOptions): SandboxManager {
  const { sessionId, pool } = options;
  return new SandboxManager({
    ...(pool === undefined && { workspace: workspaceOf(sessionId), sandboxes: Sandbox }),
    ...options,
  });
}

/** Rated HIGH: somebody is asked first. */
const RISKY = "import ctypes\nprint('done')";

test("4.1 the manager is the one entrance", async () => {
  await using manager = managerOf({ sessionId: "session_123", securityMode: "STRICT" });

  const result = await manager.execute({ code: "print('Hello')", language: "python" });

  expect([result.success, result.stdout]).toEqual([true, "Hello\n"]);
});

test("4.2 the assessment is a hint, and STRICT isolates what is not SAFE", async () => {
  const risk = await UnifiedRiskPolicy.assess("import os", "python");
  expect(risk.level).not.toBe("SAFE");
  expect(risk.detected).toEqual([expect.objectContaining({ line: 1 })]);

  const sandboxType = UnifiedRiskPolicy.getRequiredSandbox(risk, "STRICT");
  expect(sandboxType).not.toBe("subprocess");

  await using manager = managerOf({ sessionId: "session_123", securityMode: "STRICT" });
  const code = "import os\nprint(os.getcwd(), sorted(os.environ)[:0])";
  const result = await manager.execute({ code, language: "python" });
  expect(result).toMatchObject({ success: true, stdout: "/workspace []\n", sandboxType });
});

test("4.3 the workspace keeps its paths inside", async () => {
  const workspace = workspaceOf("session_123");

  await workspace.writeFile("output/result.txt", "Hello");
  const content = await workspace.readFile("output/result.txt");
  expect(content).toBe("Hello");

  await expect(workspace.writeFile("../../etc/passwd", "hack")).rejects.toBeInstanceOf(PathTraversalError);
  await expect(workspace.writeFile("/etc/passwd", "hack")).rejects.toBeInstanceOf(PathTraversalError);
  await expect(workspace.readFile("../../secret")).rejects.toBeInstanceOf(PathTraversalError);
});

test("4.4 the pool binds an instance to a session", async () => {
  await using pool = fensePool({ sandboxes: Sandbox, max: 10, min: 2 });
  await pool.start();

  expect(pool.state("session_123")).toBe("IDLE");
  const acquiring = pool.acquire("session_123");
  expect(["ACQUIRING", "BUSY"]).toContain(pool.state("session_123"));
  const sandbox = await acquiring;
  expect(pool.state("session_123")).toBe("BUSY");
  expect(await pool.acquire("session_123")).toBe(sandbox);
  expect(await pool.acquire("session_456")).not.toBe(sandbox);

  const request = { code: "echo hi > kept; cat kept", language: "bash" } as const;
  const risk = await UnifiedRiskPolicy.assess(request.code, request.language);
  const result = await sandbox.execute({ ...request, risk, securityMode: "STRICT" });
  expect(result).toMatchObject({ exitCode: 0, stdout: "hi\n" });
  await pool.release("session_123");

  expect(pool.state("session_123")).toBe("IDLE");
  expect(await (await pool.acquire("session_789")).workspace.list()).toEqual([]);
});

// There is no internet: a page of the workspace stands for https://example.com.
test("4.5 the browser for research runs in a sandbox", async () => {
  const workspace = workspaceOf("session_123");
  await workspace.writeFile("page.html", "<title>Example Domain</title><h1>Hello from the sandbox</h1>");
  await using router = new BrowserRouter("session_123", { workspace, sandboxes: Sandbox });

  const result = await router.execute(
    { action: "navigate", params: { url: "file:///workspace/page.html" } },
    { isResearch: true },
  );

  expect(result).toMatchObject({ success: true, route: "sandbox", title: "Example Domain" });
  const text = await router.execute({ action: "text" }, { isResearch: true });
  expect(text.text).toContain("Hello from the sandbox");
});

test("4.6 risky code waits for somebody", async () => {
  // In production reviewers are connected to the broker by its WebSocket door; this one is in the same process.
  using broker = new ConfirmationBroker();
  const shown: string[] = [];
  const everything = { ownerId: undefined };
  broker.watch(everything, (event) => {
    if (event.type !== "requested") return;
    const { id, hash, request } = event.pending;
    shown.push(request.code);
    broker.answer({ id, hash, approve: shown.length === 1 }, { ...everything, name: "reviewer" });
  });
  const confirmation = new WebSocketConfirmationService(broker);
  await using manager = managerOf({ sessionId: "session_123", confirmation });
  expect(await manager.execute({ code: RISKY, language: "python" })).toMatchObject({ success: true, stdout: "done\n" });
  expect(await manager.execute({ code: RISKY, language: "python" })).toMatchObject({
    success: false,
    errorCode: "DENIED",
    sandboxType: undefined,
  });
  expect(shown).toEqual([RISKY, RISKY]);

  await using denying = managerOf({ sessionId: "session_123", confirmation: new AutoDenyConfirmationService() });
  expect(await denying.execute({ code: RISKY, language: "python" })).toMatchObject({ errorCode: "DENIED" });

  await using developing = managerOf({ sessionId: "session_123", confirmation: new AutoApproveConfirmationService() });
  const approved = await developing.execute({ code: RISKY, language: "python" });
  expect(approved).toMatchObject({ success: true, stdout: "done\n" });
  expect(approved.sandboxType).not.toBe("subprocess");
});

test("6 the tool run_code goes through the manager", async () => {
  await using manager = managerOf({ sessionId: "session_123" });
  const runCode = new RunCodeTool(manager);

  const result = await runCode.execute({ code: "print('Hello')", language: "python", timeoutMs: 30_000 });

  expect(result).toMatchObject({ success: true, stdout: "Hello\n" });
  expect(manager.history).toHaveLength(1);
});

test("9 basic use: what is there runs, what is missing is told", async () => {
  const manager = managerOf({ sessionId: "user_session_123", securityMode: "STRICT" });
  const request = {
    code: "import pandas as pd; print(pd.__version__)",
    language: "python",
    timeoutMs: 30_000,
  } as const;
  const told: string[] = [];
  const tell = async (files: Readonly<Record<string, string>>): Promise<void> => {
    const result = await manager.execute({ ...request, files });
    if (result.success) told.push(`输出: ${result.stdout}`, `使用的 Sandbox: ${result.sandboxType}`);
    else told.push(`错误: ${result.error}`);
  };

  // The real one is not installed in the box.
  await tell({});
  await tell({ "pandas.py": "__version__ = '2.2.3'\n" });
  expect(told).toEqual([
    "错误: it ended with exit code 1: ModuleNotFoundError: No module named 'pandas'",
    "输出: 2.2.3\n",
    "使用的 Sandbox: fense",
  ]);

  await manager.cleanup();
  await expect(manager.execute(request)).rejects.toThrow("is cleaned up");
});

test("9 with a confirmation service, in development", async () => {
  await using manager = managerOf({
    sessionId: "session_123",
    confirmation: new AutoApproveConfirmationService(),
    securityMode: "PERMISSIVE",
  });
  expect(await manager.execute({ code: RISKY, language: "python" })).toMatchObject({
    success: true,
    sandboxType: "fense",
  });
});

test("9 with a pool", async () => {
  const pool = fensePool({ sandboxes: Sandbox, max: 2 });
  await pool.start();
  const manager = managerOf({ sessionId: "session_123", pool });

  await manager.execute({ code: "echo first > note", language: "bash" });
  expect(await manager.execute({ code: "cat note", language: "bash" })).toMatchObject({ stdout: "first\n" });
  expect(pool.metrics()).toMatchObject({ acquired: 1, busy: 1 });
  await manager.cleanup();
  const next = managerOf({ sessionId: "session_456", pool });
  expect(await next.execute({ code: "ls -A", language: "bash" })).toMatchObject({ success: true, stdout: "" });
  await next.cleanup();

  await pool.stop();
  expect(pool.metrics()).toMatchObject({ alive: 0 });
});
