import { Sandbox } from "agentfense";

await using sandbox = await Sandbox.fromLocal("./project", { preset: "development" });

// #region look
await sandbox.run("echo '# Tracker' > README.md; echo draft > draft.txt; rm docs/carriers.md");
for await (const { kind, path } of sandbox.changes()) console.log(kind, path);
console.log(await sandbox.diff({ paths: ["/README.md"] }).text());
// #endregion

// #region decide
await sandbox.discard({ paths: ["/draft.txt"] });
const trial = await sandbox.apply({ dryRun: true });
for (const { change, applied, reason } of trial.outcomes) console.log(change.path, applied, reason);
await sandbox.apply({ paths: ["/README.md"] }); // now ./project/README.md is changed
console.log((await sandbox.changes().toArray()).map(({ path }) => path)); // what is left
// #endregion
