import { AgentWorkspace, ConfirmationReviewer, RemoteConfirmationService, SandboxManager } from "agentfense/agent";

const endpoint = process.env.REST_ENDPOINT ?? "http://127.0.0.1:8080";
const workspace = new AgentWorkspace("session_123", { directory: "./work" });

// #region agent
await using manager = new SandboxManager({
  sessionId: "session_123",
  workspace,
  confirmation: new RemoteConfirmationService({ endpoint }), // the key: AGENTFENSE_API_KEY, or apiKey
});
const running = manager.execute({ code: "find . -name '*.pyc' -delete && rm -rf build", language: "bash" });
// #endregion

// #region reviewer
await using reviewer = await ConfirmationReviewer.connect({ endpoint, name: "Ann" });
for await (const { id, request } of reviewer) {
  console.log(request.action, request.risk.level, request.code);
  const outcome = await reviewer.answer(id, true, "only what can be built again");
  if (!outcome.accepted) console.log("not counted:", outcome.reason); // already_answered, expired, withdrawn …
  break;
}
// #endregion
const { success, sandboxType } = await running;
console.log(success, sandboxType);
