import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { readProjectPolicy, Sandbox } from "agentfense";

await copyFile(join(import.meta.dirname, "project-policy.yaml"), "project/.agentfense.yaml");

// #region policy
console.log((await readProjectPolicy("./project"))?.preset);
await using sandbox = await Sandbox.fromLocal("./project"); // takes what project/.agentfense.yaml says
console.log((await sandbox.run("echo more >> docs/carriers.md && ls -A")).stdout);
// #endregion
