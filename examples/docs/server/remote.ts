// #region start
import { Sandbox } from "@agentfense/sdk";

// The address and the key come from AGENTFENSE_ENDPOINT and AGENTFENSE_API_KEY; both can be given here instead.
await using sandbox = await Sandbox.fromLocal("./project", {
  preset: "development",
  onProgress: ({ phase, doneBytes, totalBytes }) => {
    if (phase === "uploading" && doneBytes === totalBytes) console.log("uploaded");
  },
});
await sandbox.run("echo '# Tracker' > README.md");
for (const { change, applied } of (await sandbox.apply()).outcomes) console.log(change.path, applied);
// #endregion

// #region connect
await using again = await Sandbox.connect(sandbox.id);
console.log((await again.run("cat README.md")).stdout); // the same sandbox; disposing `again` leaves it alone
// #endregion

// #region getOrCreate
const shared = await Sandbox.getOrCreate("nightly", { directory: "./project" }); // makes it, or finds it and starts it
console.log(shared.id === (await Sandbox.getOrCreate("nightly", { directory: "./project" })).id);
await shared.destroy();
// #endregion

// #region list
for await (const { status, labels } of Sandbox.list({ codebaseId: sandbox.codebaseId })) console.log(status, labels);
// #endregion
