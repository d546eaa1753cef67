import { Sandbox } from "agentfense";

await using sandbox = await Sandbox.fromLocal("./project");

// #region events
await sandbox.run("cat .env; echo x > src/tracker.js");
for await (const event of sandbox.events({ types: ["permission_denied"] })) {
  console.log(event.data.operation, event.data.path, event.data.permission);
  if (event.data.operation === "open") break; // it goes on with what happens next; `follow: false` ends here by itself
}
// #endregion
