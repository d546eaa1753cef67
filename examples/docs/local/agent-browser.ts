// #region start
import { AgentWorkspace, BrowserRouter } from "agentfense/agent";

const workspace = new AgentWorkspace("session_123", { directory: "./work" });
await workspace.writeFile("page.html", "<title>Report</title><h1>Parcels</h1><p>Two are late.</p>");
await workspace.writeFile(".env", "TOKEN=secret");
await using router = new BrowserRouter("session_123", { workspace });

const context = { isResearch: true }; // or needsFileAccess: the browser runs in a sandbox
const page = await router.execute({ action: "navigate", params: { url: "file:///workspace/page.html" } }, context);
console.log(page.success, page.route, page.title);
console.log((await router.execute({ action: "markdown" }, context)).text);
const hidden = await router.execute({ action: "navigate", params: { url: "file:///workspace/.env" } }, context);
console.log(hidden.success, hidden.errorCode); // what the rules hide is not there
// #endregion
