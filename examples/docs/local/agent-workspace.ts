// #region start
import { AgentWorkspace, PathTraversalError } from "agentfense/agent";

const workspace = new AgentWorkspace("session_123"); // or { directory: "./work" }
await workspace.writeFile("output/result.txt", "Hello");
console.log(await workspace.readFile("output/result.txt"));
for (const { path, kind } of await workspace.list("", { recursive: true })) console.log(kind, path);
await workspace.writeFile("../../etc/passwd", "hack").catch((error: Error) => {
  console.log(error instanceof PathTraversalError, error.message);
});
await workspace.remove();
// #endregion
