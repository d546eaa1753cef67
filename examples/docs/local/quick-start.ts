// #region start
import { Sandbox } from "agentfense";

await using sandbox = await Sandbox.fromLocal("./project", { preset: "agent-safe" });
const result = await sandbox.run("mkdir -p output && grep -rn TODO src | tee output/todo.txt; cat .env");
console.log(result.exitCode, result.stdout, result.stderr);
for await (const change of sandbox.changes()) console.log(change.kind, change.path);
await sandbox.apply(); // or sandbox.diff(), sandbox.discard()
// #endregion
