import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "agentfense";
import { SandboxManager } from "agentfense/agent";
import { expect, onTestFinished, test } from "vitest";
import { AutoApproveConfirmationService } from "../../src/confirmation/callback.ts";
import { RunCodeTool } from "../../src/tools/code.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";
import { WorldInterface } from "../../src/world/world.ts";

async function place() {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-run-code-test-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const workspace = new AgentWorkspace("session_123", { directory });
  const confirmation = new AutoApproveConfirmationService();
  const manager = new SandboxManager({ sessionId: "session_123", workspace, sandboxes: Sandbox, confirmation });
  onTestFinished(() => manager.cleanup());
  return { workspace, manager };
}

test("RunCodeTool runs code through the manager and gives its result", async () => {
  const { manager } = await place();
  const runCode = new RunCodeTool(manager);
  const result = await runCode.execute({ code: "print('Hello')", language: "python", timeoutMs: 30_000 });
  expect(result).toMatchObject({
    success: true,
    stdout: "Hello\n",
    risk: { level: "SAFE" },
    sandboxType: "subprocess",
  });
  expect(runCode.name).toBe("run_code");
  await expect(
    runCode.execute({ code: "print(1)", language: "python" }, { signal: AbortSignal.abort(new Error("enough")) }),
  ).rejects.toThrow("enough");
});

test("code and files of one world see each other, wherever the code runs", async () => {
  const { workspace, manager } = await place();
  const world = new WorldInterface({ manager, workspace });
  const said = async (tool: string, input: unknown) => (await world.execute(tool, input)).text;
  await said("write_file", { path: "data/in.txt", content: "abc" });
  const code = "open('data/out.txt', 'w').write(open('data/in.txt').read().upper())";
  expect(await said("run_code", { language: "python", code })).toBe("(no output)");
  expect(await said("read_file", { path: "data/out.txt" })).toBe("ABC");
  expect(await said("shell", { command: "cat data/*.txt" })).toBe("abcABC");
});
