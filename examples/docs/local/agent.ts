// #region start
import { AgentWorkspace, CallbackConfirmationService, SandboxManager } from "agentfense/agent";

await using manager = new SandboxManager({
  sessionId: "session_123",
  securityMode: "STRICT",
  workspace: new AgentWorkspace("session_123", { directory: "./work" }),
  confirmation: new CallbackConfirmationService(({ reason }) => {
    console.log(reason.split("\n")[0]);
    return false; // somebody says no
  }),
});

const sum = await manager.execute({ code: "print(sum(range(10)))", language: "python" });
console.log(sum.risk.level, sum.sandboxType, sum.stdout.trim());

const report = await manager.execute({
  code: "import os\nopen('report.txt', 'w').write(open('in.txt').read().upper())\nprint(os.getcwd())",
  language: "python",
  timeoutMs: 10_000,
  files: { "in.txt": "hello" },
});
console.log(report.risk.level, report.sandboxType, report.stdout.trim());

const wipe = await manager.execute({ code: "rm -rf /", language: "bash" });
console.log(wipe.success, wipe.errorCode, wipe.error);
// #endregion
